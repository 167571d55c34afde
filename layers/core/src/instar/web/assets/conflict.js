// Somebody wrote while the owner did: both texts side by side, and a merged one to save.

import { h } from "/assets/dom.js";

const lines = (text) => text.replace(/\n$/, "").split("\n");

/** Your text, plus the lines that they added, minus those that they removed and you left alone. */
export function mergedText(base, theirs, yours) {
  const before = new Set(lines(base));
  const now = new Set(lines(theirs));
  const kept = lines(yours).filter((line) => !line.trim() || now.has(line) || !before.has(line));
  const have = new Set(kept);
  const added = lines(theirs).filter((line) => line.trim() && !before.has(line) && !have.has(line));
  return `${[...kept, ...added].join("\n").trimEnd()}\n`;
}

export function conflictPanel(base, theirs, yours, onSave) {
  const merged = h("textarea", { id: "merged", class: "editor", spellcheck: "true" });
  merged.value = mergedText(base, theirs, yours);
  const use = (label, text) => h("button", { type: "button", class: "button small-button", onclick: () => { merged.value = text; merged.focus(); } }, label);
  return h("section", { class: "conflict", "aria-labelledby": "conflict-title" },
    h("div", { class: "callout", role: "alert" }, h("h2", { id: "conflict-title" }, "This document changed while you were editing"),
      h("p", { class: "muted" }, "Nothing is lost. Both texts are below; the last box holds them merged. Change it as you like, then save.")),
    h("div", { class: "sides" }, side("In memory now", theirs, base), side("Yours", yours, base)),
    h("div", { class: "merge-head" }, h("label", { for: "merged" }, "Merged"), h("div", { class: "actions" }, use("Take theirs", theirs), use("Take mine", yours), use("Both", mergedText(base, theirs, yours)))),
    merged,
    h("div", { class: "actions start" }, h("button", { type: "button", class: "button primary", onclick: () => onSave(merged.value) }, "Save merged text")));
}

function side(title, text, base) {
  const known = new Set(lines(base));
  const shown = lines(text).map((line) => h(known.has(line) ? "span" : "mark", { class: "line" }, `${line}\n`));
  return h("div", { class: "side" }, h("h3", {}, title), h("pre", { tabindex: "0", "aria-label": title }, shown));
}
