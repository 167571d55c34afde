// The list of sessions at the side.

import { get, whole } from "/assets/api.js";
import { $, h, when } from "/assets/dom.js";

const CHANNELS = { telegram: "Telegram", slack: "Slack", discord: "Discord", generic: "Webhook" };

export function sessionTitle(row) {
  if (row.title) return row.title;
  return row.session.startsWith("web-") ? "New session" : row.session;
}

let rows = [];

export const titleOf = (session) => sessionTitle(rows.find((row) => row.session === session) ?? { session });

export async function refreshSessions(current) {
  try {
    rows = (await get("/v1/sessions?titles=true")).sessions;
  } catch {
    return; // the list stays as it was; the view says what is wrong
  }
  showSessions(current);
}

export function showSessions(current) {
  const items = rows.map((row) => h("li", {},
    h("a", { href: `#/chat/${whole(row.session)}`, "aria-current": row.session === current ? "page" : null },
      h("span", { class: "session-title" }, sessionTitle(row)),
      h("span", { class: "session-meta" }, [CHANNELS[row.channel], when(row.at)].filter(Boolean).join(" · ")))));
  $("session-list").replaceChildren(...(items.length ? items : [h("li", { class: "muted small" }, "Your conversations will be listed here.")]));
}

/** Whether anybody has said anything in it, as far as the list knows. */
export const isKnown = (session) => rows.some((row) => row.session === session);

export const newestSession = () => rows.find((row) => !CHANNELS[row.channel])?.session;
