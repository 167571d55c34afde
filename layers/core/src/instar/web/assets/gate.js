// The door: the set-up link signs the browser in; without it, a code or the owner's key does.

import { api, post } from "/assets/api.js";
import { $, h, problemCard } from "/assets/dom.js";

/** The code of the set-up link; it is taken out of the address bar before anything else. */
export function takeSetupCode() {
  const match = /^#setup=(.+)$/.exec(location.hash);
  if (match) history.replaceState(null, "", location.pathname);
  return match ? decodeURIComponent(match[1]) : null;
}

export const redeem = (code) => post("/v1/setup", { code });

export function showGate(onSignedIn, problem) {
  const said = h("div", { role: "status" }, problem ? problemCard(problem) : null);
  const box = h("input", { id: "credential", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const enter = async (event) => {
    event.preventDefault();
    said.replaceChildren();
    try {
      await signIn(box.value.trim());
      onSignedIn();
    } catch (refused) {
      said.replaceChildren(problemCard(refused));
      box.select();
    }
  };
  $("gate").replaceChildren(h("main", { class: "gate-card" },
    h("img", { src: "/assets/icon.svg", alt: "", width: "56", height: "56" }), h("h1", {}, "Instar"),
    h("p", {}, "This is somebody’s personal agent. If it is yours, open the set-up link that Instar printed in the terminal when it started."),
    said,
    h("form", { class: "fields", onsubmit: enter }, h("div", { class: "field" }, h("label", { for: "credential" }, "Or enter the code of that link, or an owner key"), box),
      h("button", { class: "button primary wide" }, "Sign in"))));
  $("shell").hidden = true;
  $("gate").hidden = false;
  box.focus();
}

async function signIn(text) {
  const code = text.replace(/^.*#setup=/, "");
  if (code.startsWith("ik_")) await api("POST", "/v1/login", {}, { Authorization: `Bearer ${code}` });
  else await redeem(code);
}

