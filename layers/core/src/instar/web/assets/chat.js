// A session: its transcript, what happens in it now, and the box to write in.

import { get, randomId, whole } from "/assets/api.js";
import { $, announce, emptyState, h, icon, problemCard } from "/assets/dom.js";
import { Live } from "/assets/live.js";
import { isKnown } from "/assets/sessions.js";
import { AgentTurn, noticeLine, userBubble } from "/assets/turns.js";

const NEAR_BOTTOM = 90;
const IDEAS = ["Remember that I prefer short answers.", "What do you remember about me?", "Remember: the spare key is with Mara next door."];

export function newSessionName() {
  const now = new Date();
  const two = (number) => String(number).padStart(2, "0");
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  return `web-${day}-${two(now.getHours())}${two(now.getMinutes())}-${randomId().slice(0, 4)}`;
}

export class Chat {
  constructor(session, onChange) {
    Object.assign(this, { session, onChange, turns: new Map(), pending: new Map(), ended: new Set(), running: null });
    this.list = h("ol", { class: "transcript", "aria-label": "Conversation" });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Conversation", onscroll: () => this.scrolled() }, this.list);
    this.latest = h("button", { type: "button", class: "latest icon-button", hidden: true, "aria-label": "Jump to the latest", onclick: () => this.toBottom() }, icon("down"));
    this.element = h("section", { class: "chat" }, this.scroller, this.latest, this.composer());
  }

  composer() {
    this.box = h("textarea", {
      id: "message", rows: "1", maxlength: "32000", placeholder: "Write to Instar", enterkeyhint: "send", "aria-describedby": "message-hint",
      onkeydown: (event) => this.key(event), oninput: () => this.grow(),
    });
    this.sendButton = h("button", { type: "submit", class: "round primary", "aria-label": "Send" }, icon("send"));
    this.stopButton = h("button", { type: "button", class: "round", hidden: true, "aria-label": "Stop the reply", onclick: () => this.stop() }, icon("stop"));
    return h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h("label", { class: "visually-hidden", for: "message" }, "Message"),
      this.box, this.stopButton, this.sendButton,
      h("p", { id: "message-hint", class: "hint" }, "Enter sends, Shift+Enter makes a new line. /new starts a new conversation."));
  }

  async open() {
    let found = { messages: [], after: 0 };
    try {
      if (isKnown(this.session)) found = await get(`/v1/sessions/${whole(this.session)}?full=true`);
    } catch (problem) {
      this.list.replaceChildren(h("li", {}, problemCard(problem, h("button", { type: "button", class: "button", onclick: () => this.open() }, "Try again"))));
      return;
    }
    if (this.left) return;
    this.list.replaceChildren();
    this.showPast(found.messages);
    if (!found.messages.length) this.showEmpty();
    this.live = new Live(this.session, found.after, {
      onEvent: (event) => this.happened(event),
      onState: (state) => this.connection(state),
    });
    this.toBottom();
  }

  leave() {
    this.left = true;
    this.live?.close();
    $("connection").textContent = "";
  }

  focus() {
    this.box.focus({ preventScroll: true });
  }

  // --- what was said -----------------------------------------------------------------------

  showPast(messages) {
    let block = null;
    for (const message of messages) {
      if (message.role === "assistant") {
        if (!block) this.append((block = new AgentTurn()).element);
        block.past(message);
        if (message.turn) this.ended.add(message.turn);
      } else if (message.role === "tool") {
        for (const part of message.parts) block?.toolResult(part);
      } else {
        block?.end();
        block = null;
        this.append(message.role === "user" ? userBubble(message.text) : noticeLine(message.text));
        if (message.role === "notice" && message.turn) this.ended.add(message.turn);
      }
    }
    block?.end();
  }

  showEmpty() {
    const ideas = IDEAS.map((idea) => h("li", {}, h("button", { type: "button", class: "idea", onclick: () => this.suggest(idea) }, idea)));
    this.empty = h("li", { class: "empty-item" }, emptyState("What is on your mind?", "Ask anything, or tell me something worth remembering.", h("ul", { class: "ideas" }, ideas)));
    this.append(this.empty);
  }

  suggest(text) {
    this.box.value = text;
    this.grow();
    this.focus();
  }

  append(element) {
    const stay = this.isNearBottom();
    this.list.append(element);
    if (stay) this.toBottom();
  }

  // --- what happens ------------------------------------------------------------------------

  happened(event) {
    if (event.kind === "accepted") return this.accepted(event);
    if (event.kind === "error") return this.refused(event);
    if (event.turn && this.ended.has(event.turn)) return undefined;
    const stay = this.isNearBottom();
    if (event.kind === "turn_started") this.started(event);
    else if (event.kind === "notice") this.append(noticeLine(event.text));
    else this.progress(this.turns.get(event.turn) ?? this.started(event), event);
    if (stay) this.toBottom();
    return undefined;
  }

  accepted({ id, turn }) {
    const bubble = this.pending.get(id);
    this.pending.delete(id);
    if (!bubble) return;
    if (this.turns.has(turn) || this.ended.has(turn)) bubble.remove();
    else bubble.dataset.turn = turn;
  }

  refused(problem) {
    const bubble = this.pending.get(problem.id);
    this.pending.delete(problem.id);
    if (bubble) {
      bubble.remove();
      this.box.value ||= bubble.querySelector(".bubble").textContent;
    }
    this.append(h("li", { class: "message agent" }, problemCard(problem)));
  }

  started(event) {
    let turn = this.turns.get(event.turn);
    if (turn) {
      turn.begin();
    } else {
      this.empty?.remove();
      const mine = this.list.querySelector(`[data-turn="${CSS.escape(event.turn)}"]`);
      if (mine) mine.classList.remove("pending");
      else if (event.text && event.kind === "turn_started") this.insert(userBubble(event.text));
      turn = new AgentTurn();
      this.turns.set(event.turn, turn);
      if (mine) mine.after(turn.element);
      else this.insert(turn.element);
    }
    this.busy(event.turn);
    return turn;
  }

  /** Before what still waits for its turn. */
  insert(element) {
    this.list.insertBefore(element, this.list.querySelector(".pending"));
  }

  progress(turn, event) {
    if (event.kind === "text_delta") turn.text(event.text);
    else if (event.kind === "reasoning_delta") turn.reasoning(event.text);
    else if (event.kind === "tool_call") turn.toolCall(event);
    else if (event.kind === "tool_result") turn.toolResult(event);
    else if (event.kind === "reply") turn.reply(event);
    else if (event.kind === "turn_failed") turn.fail(event);
    if (turn.done) this.finished(turn, event);
  }

  finished(turn, event) {
    this.ended.add(event.turn);
    this.busy(null);
    this.connection("on");
    if (turn.segments.length) this.polish(turn, event.turn);
    announce(`Instar: ${event.text}`);
    this.onChange(this.session);
  }

  async polish(turn, id) {
    try {
      const { messages } = await get(`/v1/sessions/${whole(this.session)}?full=true`);
      turn.polish(messages.filter((message) => message.turn === id));
    } catch { /* it stays as it was streamed */ }
  }

  busy(turn) {
    this.running = turn;
    this.stopButton.hidden = !turn;
    this.sendButton.hidden = Boolean(turn) && !this.box.value.trim();
  }

  connection(state) {
    const words = { on: "", trying: "", off: "Reconnecting…" };
    if (state !== "trying") $("connection").textContent = words[state];
  }

  // --- writing -----------------------------------------------------------------------------

  key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    }
  }

  submit() {
    const text = this.box.value;
    if (!text.trim() || !this.live) return;
    this.empty?.remove();
    const bubble = userBubble(text.trim(), true);
    this.append(bubble);
    this.pending.set(this.live.send(text.trim()), bubble);
    this.box.value = "";
    this.grow();
    this.toBottom();
  }

  stop() {
    this.live?.stop();
    $("connection").textContent = "Stopping…";
    this.stopButton.hidden = true;
    this.sendButton.hidden = false;
    this.focus();
  }

  escape() {
    if (this.running) this.stop();
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, 220)}px`;
    if (this.running) this.sendButton.hidden = !this.box.value.trim();
  }

  // --- scrolling ---------------------------------------------------------------------------

  isNearBottom() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM;
  }

  toBottom() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  scrolled() {
    this.latest.hidden = this.isNearBottom();
  }
}
