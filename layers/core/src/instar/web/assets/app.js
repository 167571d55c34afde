// The page: sign in, choose a view by the address, wire what stands around the views.

import { get, post, whole } from "/assets/api.js";
import { Chat, newSessionName } from "/assets/chat.js";
import { editView, listView, readView } from "/assets/documents.js";
import { $, h, icon, problemCard } from "/assets/dom.js";
import { redeem, showGate, takeSetupCode } from "/assets/gate.js";
import { historyView } from "/assets/history.js";
import { searchView } from "/assets/search.js";
import { newestSession, refreshSessions, showSessions, titleOf } from "/assets/sessions.js";
import { settingsView } from "/assets/settings.js";

let chat = null;
let drawn = 0;
let isFirstView = true;

async function start() {
  const code = takeSetupCode();
  let problem;
  try {
    if (code) await redeem(code);
  } catch (refused) {
    problem = refused;
  }
  await enter(Boolean(code), problem);
}

async function enter(isFirstRun, problem) {
  let settings;
  try {
    settings = await get("/v1/settings");
  } catch (refused) {
    showGate(() => enter(false), problem ?? (refused.status === 401 ? undefined : refused));
    return;
  }
  $("gate").hidden = true;
  $("shell").hidden = false;
  showBanner(settings);
  await refreshSessions();
  if (isFirstRun && settings.is_demo) location.hash = "#/settings";
  draw();
}

let isDemo = false;

function showBanner(settings) {
  const banner = $("banner");
  isDemo = settings.is_demo;
  banner.hidden = !isDemo || route().page === "settings";
  banner.replaceChildren("The demo model answers: it has no intelligence. ", h("a", { href: "#/settings" }, "Enter a key or a local model’s address"), ".");
}

// --- views ----------------------------------------------------------------------------------

function route() {
  const [page = "", name = "", view = ""] = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return { page, name: decodeURIComponent(name), view };
  } catch {
    return { page: "", name: "", view: "" };
  }
}

async function draw() {
  const turn = ++drawn;
  const asked = route();
  if ($("shell").hidden) return; // nobody has signed in yet
  if (!asked.page || (asked.page === "chat" && !asked.name)) {
    history.replaceState(null, "", `#/chat/${whole(newestSession() ?? newSessionName())}`);
    draw();
    return;
  }
  closeMenu();
  chat?.leave();
  chat = null;
  mark(asked);
  if (asked.page === "chat") drawChat(asked.name);
  else await drawPage(asked, turn);
}

function drawChat(session) {
  chat = new Chat(session, (changed) => refreshSessions(changed).then(() => setTitle(titleOf(changed))));
  $("main").className = "chat-main";
  $("main").replaceChildren(chat.element);
  setTitle(titleOf(session));
  chat.open();
  isFirstView = false;
  if (matchMedia("(pointer: fine)").matches) chat.focus();
}

async function drawPage(asked, turn) {
  const [title, build] = views(asked);
  setTitle(title);
  $("main").className = "";
  let view;
  try {
    view = await build();
  } catch (problem) {
    const again = h("button", { type: "button", class: "button", onclick: draw }, "Try again");
    view = h("div", { class: "page" }, problemCard(problem, again));
  }
  if (turn !== drawn) return;
  $("main").replaceChildren(view);
  $("main").scrollTop = 0;
  if (!isFirstView) $("main").focus({ preventScroll: true }); // a page just opened starts at its top
  isFirstView = false;
}

function views({ page, name, view }) {
  if (page === "documents" && name && view === "edit") return [name, () => editView(name)];
  if (page === "documents" && name && view === "history") return [`History of ${name}`, () => historyView(name)];
  if (page === "documents" && name) return [name, () => readView(name)];
  if (page === "documents") return ["Documents", listView];
  if (page === "search") return ["Search", () => searchView(name)];
  return ["Settings", () => settingsView(applied)];
}

function applied(settings) {
  showBanner(settings);
  location.hash = `#/chat/${whole(newestSession() ?? newSessionName())}`;
}

function setTitle(text) {
  $("title").textContent = text;
  document.title = `${text} – Instar`;
}

function mark({ page, name }) {
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showSessions(page === "chat" ? name : null);
  $("banner").hidden = !isDemo || page === "settings"; // the settings say it themselves
  $("search-box").value = page === "search" ? name : "";
}

// --- around the views -----------------------------------------------------------------------

function openMenu() {
  $("sidebar").classList.add("open");
  $("scrim").hidden = false;
  $("open-menu").setAttribute("aria-expanded", "true");
  $("close-menu").focus();
}

function closeMenu() {
  if (!$("sidebar").classList.contains("open")) return;
  $("sidebar").classList.remove("open");
  $("scrim").hidden = true;
  $("open-menu").setAttribute("aria-expanded", "false");
  $("open-menu").focus();
}

const THEMES = { system: ["system", "Theme: as the system"], light: ["sun", "Theme: light"], dark: ["moon", "Theme: dark"] };

function showTheme() {
  const [name, label] = THEMES[document.documentElement.dataset.theme ?? "system"];
  $("theme").replaceChildren(icon(name));
  $("theme").setAttribute("aria-label", `${label}. Change it`);
  $("theme").title = label;
}

function nextTheme() {
  const order = Object.keys(THEMES);
  const next = order[(order.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % order.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("theme", next);
  } catch { /* storage is off: it lasts until the page closes */ }
  showTheme();
}

function startSession() {
  location.hash = `#/chat/${whole(newSessionName())}`;
}

function onKey(event) {
  const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const dialogOpen = Boolean(document.querySelector("dialog[open]"));
  if (dialogOpen || $("shell").hidden) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (matchMedia("(max-width: 760px)").matches) openMenu();
    $("search-box").focus();
  } else if (event.altKey && event.code === "KeyN") {
    event.preventDefault();
    startSession();
  } else if (event.key === "Escape") {
    if ($("sidebar").classList.contains("open")) closeMenu();
    else chat?.escape();
  } else if (event.key === "?" && !writing) {
    $("help").showModal();
  }
}

function wire() {
  $("open-menu").append(icon("menu"));
  $("close-menu").append(icon("close"));
  $("help-button").append(icon("help"));
  $("open-menu").onclick = openMenu;
  $("close-menu").onclick = closeMenu;
  $("scrim").onclick = closeMenu;
  $("new-session").onclick = startSession;
  $("theme").onclick = nextTheme;
  $("help-button").onclick = () => $("help").showModal();
  for (const closer of document.querySelectorAll("#help [data-close]")) closer.onclick = () => $("help").close();
  $("search-form").onsubmit = (event) => {
    event.preventDefault();
    location.hash = `#/search/${whole($("search-box").value)}`;
  };
  $("sign-out").onclick = async () => {
    await post("/v1/logout").catch(() => undefined);
    showGate(() => enter(false));
  };
  document.querySelector(".skip").onclick = (event) => {
    event.preventDefault();
    $("main").focus();
  };
  document.addEventListener("keydown", onKey);
  document.addEventListener("signed-out", () => {
    if ($("gate").hidden && !$("shell").hidden) showGate(() => enter(false));
  });
  window.addEventListener("hashchange", () => {
    const code = takeSetupCode();
    if (code) redeem(code).then(() => enter(true), (problem) => enter(true, problem));
    else draw();
  });
  showTheme();
}

wire();
start();
