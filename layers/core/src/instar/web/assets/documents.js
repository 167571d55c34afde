// Documents: the list, one document, its editor. History and conflicts have modules of their own.

import { api, get, path, whole } from "/assets/api.js";
import { conflictPanel } from "/assets/conflict.js";
import { announce, emptyState, h, problemCard, setSafeHtml } from "/assets/dom.js";

const KINDS = [["fact", "Always remembered"], ["note", "Notes"], ["daily", "Days"], ["transcript", "Transcripts"], ["persona", "Persona"]];
const drafts = new Map();

export const documentLink = (name, view = "") => `#/documents/${whole(name)}${view ? `/${view}` : ""}`;

export async function listView() {
  const { documents } = await get("/v1/documents");
  const groups = KINDS.map(([kind, title]) => {
    const names = documents.filter((row) => row.kind === kind);
    if (!names.length) return null;
    return h("section", { class: "doc-group" }, h("h2", {}, title),
      h("ul", { class: "rows" }, names.map((row) => h("li", {}, h("a", { href: documentLink(row.document) }, row.document)))));
  });
  return h("div", { class: "page" },
    h("div", { class: "page-head" }, h("p", { class: "lead" }, "Everything Instar remembers stands in these Markdown documents. They are yours to read and change."),
      h("button", { type: "button", class: "button", onclick: () => showNew() }, "New document")),
    newForm(),
    documents.length ? groups : emptyState("Nothing remembered yet", "Tell Instar something worth keeping, or write it into MEMORY.md yourself.",
      h("a", { class: "button", href: documentLink("MEMORY.md", "edit") }, "Write MEMORY.md")));
}

function newForm() {
  const name = h("input", { id: "new-name", value: "memory/", autocomplete: "off", spellcheck: "false" });
  return h("form", { id: "new-document", class: "inline-form", hidden: true, onsubmit: (event) => { event.preventDefault(); location.hash = documentLink(withEnding(name.value.trim()), "edit"); } },
    h("label", { for: "new-name" }, "Name"), name, h("button", { class: "button primary" }, "Create"));
}

const withEnding = (name) => (name.endsWith(".md") ? name : `${name}.md`);

function showNew() {
  document.getElementById("new-document").hidden = false;
  const name = document.getElementById("new-name");
  name.focus();
  name.setSelectionRange(name.value.length, name.value.length);
}

export async function readView(name) {
  const found = await get(`/v1/documents/${path(name)}?view=html`);
  const body = h("article", { class: "prose paper" });
  setSafeHtml(body, found.html || "<p><em>This document is empty.</em></p>");
  return h("div", { class: "page" },
    toolbar(name, h("a", { class: "button primary", href: documentLink(name, "edit") }, "Edit"), h("a", { class: "button", href: documentLink(name, "history") }, "History"), h("a", { class: "button", href: `/v1/documents/${path(name)}?view=raw`, target: "_blank", rel: "noopener" }, "Plain text")),
    body);
}

export function toolbar(name, ...actions) {
  return h("div", { class: "page-head" }, h("a", { class: "back", href: "#/documents" }, "← All documents"), h("div", { class: "actions" }, actions));
}

async function loaded(name) {
  const { documents } = await get("/v1/documents");
  if (documents.some((row) => row.document === name)) return get(`/v1/documents/${path(name)}`);
  return { document: name, revision: null, text: "" };
}

export async function editView(name) {
  const kept = drafts.get(name);
  const editor = new Editor(kept?.base ?? (await loaded(name)), kept?.text);
  return editor.element;
}

class Editor {
  constructor(base, draft) {
    this.base = base;
    this.name = base.document;
    this.area = h("textarea", { id: "editor", class: "editor", spellcheck: "true", oninput: () => this.changed(), onkeydown: (event) => this.key(event) });
    this.area.value = draft ?? base.text;
    this.state = h("p", { class: "muted small", role: "status" }, draft === undefined ? "" : "Your unsaved changes are still here.");
    this.panel = h("div", {});
    this.save = h("button", { type: "button", class: "button primary", onclick: () => this.put() }, "Save");
    this.form = h("div", {}, h("label", { class: "visually-hidden", for: "editor" }, `Text of ${this.name}`), this.area);
    this.element = h("div", { class: "page edit" }, toolbar(this.name, this.save, h("a", { class: "button", href: base.revision ? documentLink(this.name) : "#/documents", onclick: () => drafts.delete(this.name) }, "Cancel")), this.panel, this.form, this.state);
  }

  changed() {
    drafts.set(this.name, { base: this.base, text: this.area.value });
    this.state.textContent = "Not saved yet.";
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      this.put();
    }
  }

  async put() {
    this.save.disabled = true;
    this.panel.replaceChildren();
    try {
      const condition = this.base.revision ? { "If-Match": `"${this.base.revision}"` } : { "If-None-Match": "*" };
      const made = await api("PUT", `/v1/documents/${path(this.name)}`, { text: this.area.value }, condition);
      this.base = { ...this.base, text: this.area.value, revision: made.revision };
      drafts.delete(this.name);
      announce("Saved.");
      location.hash = documentLink(this.name);
    } catch (problem) {
      if (problem.status === 412) await this.conflict();
      else this.panel.replaceChildren(problemCard(problem));
    } finally {
      this.save.disabled = false;
    }
  }

  async conflict() {
    const theirs = await loaded(this.name);
    this.form.hidden = true;
    this.save.hidden = true;
    this.panel.replaceChildren(conflictPanel(this.base.text, theirs.text, this.area.value, (text) => {
      this.base = theirs;
      this.area.value = text;
      this.form.hidden = false;
      this.save.hidden = false;
      this.put();
    }));
  }
}

window.addEventListener("beforeunload", (event) => {
  if (drafts.size) event.preventDefault();
});
