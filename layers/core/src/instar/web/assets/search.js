// Search in memory: passages with the place they come from.

import { get } from "/assets/api.js";
import { documentLink } from "/assets/documents.js";
import { emptyState, h } from "/assets/dom.js";

const MODES = { hybrid: "by words and meaning", words: "by words", vectors: "by meaning" };

export async function searchView(query) {
  if (!query.trim()) return h("div", { class: "page" }, emptyState("Search your memory", "Words, names, numbers or a question. Press Ctrl+K from anywhere."));
  const found = await get(`/v1/memory/search?${new URLSearchParams({ q: query, limit: "20" })}`);
  const count = found.hits.length;
  const line = `${count} ${count === 1 ? "passage" : "passages"} for “${query}”, searched ${MODES[found.mode] ?? found.mode}.`;
  return h("div", { class: "page" },
    h("p", { class: "lead", role: "status" }, line),
    found.degraded && found.reason ? h("p", { class: "muted small" }, found.reason) : null,
    count ? h("ol", { class: "hits" }, found.hits.map(hit)) : emptyState("Nothing found", found.reason || "No document says anything like it."));
}

const place = ([first, last]) => (first === last ? `line ${first}` : `lines ${first}–${last}`);

function hit(row) {
  return h("li", {}, h("a", { href: documentLink(row.document), class: "hit-place" }, row.document, h("span", { class: "muted" }, ` · ${place(row.lines)} · ${row.kind}`)),
    h("blockquote", {}, row.text));
}
