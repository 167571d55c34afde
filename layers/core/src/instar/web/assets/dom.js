// Making and changing elements. Text is always text; `setSafeHtml` is the one place for HTML.

export const $ = (id) => document.getElementById(id);

/** h("button", { class: "x", onclick: f }, "text", child): an element. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** HTML that the server has rendered and sanitised (web/markdown.py), and no other. */
export function setSafeHtml(element, serverHtml) {
  element.innerHTML = serverHtml;
  for (const table of element.querySelectorAll("table")) {
    const scroller = h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Table" });
    table.replaceWith(scroller);
    scroller.append(table);
  }
  for (const block of element.querySelectorAll("pre")) block.tabIndex = 0;
}

const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  help: "M9.2 9a2.8 2.8 0 1 1 4.2 2.400c-.9.5-1.4 1.1-1.4 2.100M12 17v.2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.400M17.6 17.600L19 19M19 5l-1.4 1.400M6.4 17.600L5 19",
  moon: "M20 14.500A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.500z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M12 5v14M6 13l6 6 6-6",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function announce(text) {
  $("announcer").textContent = text;
}

export function ask(title, text, yes) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = yes;
  return new Promise((resolve) => {
    let answer = false;
    $("confirm-yes").onclick = () => { answer = true; dialog.close(); };
    $("confirm-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}

export function when(iso) {
  const at = new Date(iso);
  const days = (Date.now() - at.getTime()) / 86400000;
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (days < 1 && at.getDate() === new Date().getDate()) return time;
  const day = at.toLocaleDateString([], { day: "numeric", month: "short", year: days > 300 ? "numeric" : undefined });
  return `${day}, ${time}`;
}

const sentence = (text) => {
  const words = String(text ?? "").trim();
  return words && words[0].toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? "" : ".");
};

/** A problem of the API, with what to do about it. */
export function problemCard(problem, ...actions) {
  return h("div", { class: "card problem", role: "alert" },
    h("p", { class: "problem-text" }, sentence(problem.detail)),
    problem.fix ? h("p", { class: "muted" }, sentence(problem.fix)) : null,
    actions.length ? h("div", { class: "actions start" }, ...actions) : null);
}

export function emptyState(title, text, ...more) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), ...more);
}
