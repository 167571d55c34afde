// The revisions of a document: who changed what, and going back.

import { get, path, post } from "/assets/api.js";
import { announce, ask, h, problemCard, when } from "/assets/dom.js";
import { documentLink, toolbar } from "/assets/documents.js";

export async function historyView(name) {
  const { revisions } = await get(`/v1/documents/${path(name)}/history`);
  const rows = revisions.map((row, index) => revisionRow(name, row, revisions[index + 1], index === 0));
  return h("div", { class: "page" }, toolbar(name, h("a", { class: "button", href: documentLink(name) }, "Back to the text")), h("ol", { class: "history" }, rows));
}

function revisionRow(name, row, older, isCurrent) {
  const place = h("div", { class: "diff-place" });
  const show = h("button", { type: "button", class: "button small-button", "aria-expanded": "false", onclick: () => toggle(name, row, older, place, show) }, "What changed");
  const restore = h("button", { type: "button", class: "button small-button", onclick: () => restoreTo(name, row, place) }, "Restore");
  const actions = [row.deleted || !older || older.deleted ? null : show, isCurrent || row.deleted ? null : restore];
  return h("li", {}, h("div", { class: "revision" },
    h("div", {}, h("p", { class: "revision-title" }, row.reason || "changed", isCurrent ? h("span", { class: "tag" }, "current") : null),
      h("p", { class: "muted small" }, `${row.author.replace(/^agent:.*/, "Instar")} · ${when(row.at)}`)),
    h("div", { class: "actions" }, actions)), place);
}

async function toggle(name, row, older, place, button) {
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) return place.replaceChildren();
  try {
    const query = new URLSearchParams({ old: older.revision, new: row.revision });
    const { diff } = await get(`/v1/documents/${path(name)}/diff?${query}`);
    return place.replaceChildren(diffBlock(diff));
  } catch (problem) {
    return place.replaceChildren(problemCard(problem));
  }
}

function diffBlock(diff) {
  const shown = diff.split("\n").slice(2).filter(Boolean).map((line) => {
    const kind = { "+": "added", "-": "removed", "@": "place" }[line[0]] ?? "same";
    return h("span", { class: `line ${kind}` }, `${line}\n`);
  });
  return h("pre", { class: "diff", tabindex: "0", "aria-label": "Changes" }, shown.length ? shown : "No lines differ.");
}

async function restoreTo(name, row, place) {
  const yes = await ask("Restore this revision?", `${name} gets the text of ${when(row.at)} again, as a new revision. You can undo that too.`, "Restore");
  if (!yes) return;
  try {
    await post(`/v1/documents/${path(name)}/restore`, { revision: row.revision });
    announce("Restored.");
    location.hash = documentLink(name);
  } catch (problem) {
    place.replaceChildren(problemCard(problem));
  }
}
