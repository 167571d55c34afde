// What a turn looks like: the owner's words, the agent's text as it comes, its tool calls.

import { h, problemCard, setSafeHtml } from "/assets/dom.js";

export function userBubble(text, pending = false) {
  return h("li", { class: pending ? "message user pending" : "message user" },
    h("span", { class: "visually-hidden" }, "You: "), h("div", { class: "bubble" }, text));
}

export function noticeLine(text) {
  const words = text === "/new" ? "A new conversation starts here. Memory stays." : text;
  return h("li", { class: "notice-line" }, h("span", {}, words));
}

function prose(html) {
  const element = h("div", { class: "prose" });
  setSafeHtml(element, html);
  return element;
}

/** A tool call that can be opened to see what went in and what came out. */
export class ToolCall {
  constructor(name, args) {
    this.state = h("span", { class: "tool-state" }, "running");
    this.result = h("pre", { tabindex: "0" });
    this.out = h("div", { hidden: true }, h("p", { class: "tool-label" }, "Result"), this.result);
    this.element = h("details", { class: "tool" },
      h("summary", {}, h("span", { class: "tool-name" }, name.replaceAll("_", " ")), h("span", { class: "tool-hint" }, hint(args)), this.state),
      h("p", { class: "tool-label" }, "Arguments"), h("pre", { tabindex: "0" }, JSON.stringify(args, null, 2)), this.out);
  }

  finish(content, isError) {
    this.state.textContent = isError ? "failed" : "done";
    this.element.classList.add(isError ? "failed" : "done");
    this.result.textContent = pretty(content);
    this.out.hidden = false;
  }
}

function hint(args) {
  const first = Object.values(args ?? {}).find((value) => typeof value === "string") ?? "";
  return first.length > 80 ? `${first.slice(0, 79)}…` : first;
}

function pretty(content) {
  try {
    return JSON.stringify(JSON.parse(content), null, 2);
  } catch {
    return content;
  }
}

/** The agent's side of a turn. What was partial is thrown away when an attempt begins anew. */
export class AgentTurn {
  constructor() {
    this.body = h("div", { class: "agent-body" });
    this.element = h("li", { class: "message agent" }, h("span", { class: "visually-hidden" }, "Instar: "), this.body);
    this.done = false;
    this.begin();
  }

  begin() {
    this.calls = new Map();
    this.segments = [];
    this.segment = null;
    this.thinking = null;
    this.waiting = h("p", { class: "waiting", role: "status" }, h("span", { class: "visually-hidden" }, "Instar is writing"), h("i", {}), h("i", {}), h("i", {}));
    this.body.replaceChildren(this.waiting);
    this.element.setAttribute("aria-busy", "true");
  }

  add(element) {
    this.body.insertBefore(element, this.waiting);
  }

  text(piece) {
    if (!this.segment) {
      this.segment = h("div", { class: "prose streaming" });
      this.segments.push(this.segment);
      this.add(this.segment);
    }
    this.waiting.hidden = true;
    this.segment.append(piece);
  }

  reasoning(piece) {
    if (!this.thinking) {
      this.thinking = h("pre", { tabindex: "0" });
      this.add(h("details", { class: "tool thinking" }, h("summary", {}, h("span", { class: "tool-name" }, "Thinking")), this.thinking));
    }
    this.thinking.append(piece);
  }

  toolCall({ call, name, arguments: args }) {
    this.segment = null;
    this.waiting.hidden = false;
    const shown = new ToolCall(name, args);
    this.calls.set(call, shown);
    this.add(shown.element);
  }

  toolResult({ call, content, is_error: isError }) {
    this.calls.get(call)?.finish(content, isError);
  }

  reply({ html, text }) {
    const last = [...this.body.querySelectorAll(".streaming")].pop();
    const final = prose(html);
    if (last && (this.segment === last || last.textContent === text)) {
      this.segments.pop();
      last.replaceWith(final);
    } else this.add(final);
    this.end();
  }

  fail({ text, problem }) {
    this.segment?.remove();
    this.add(problemCard({ detail: problem?.detail ?? text, fix: problem?.fix ?? "" }));
    this.end();
  }

  end() {
    this.done = true;
    this.waiting.remove();
    this.element.removeAttribute("aria-busy");
    for (const rest of this.body.querySelectorAll(".streaming")) rest.classList.remove("streaming");
  }

  /** What was said between tool calls, as the transcript has it: rendered. */
  polish(messages) {
    const said = messages.filter((message) => message.role === "assistant" && message.html);
    this.segments.forEach((segment, index) => said[index] && setSafeHtml(segment, said[index].html));
    this.segments = [];
  }

  /** An assistant message of the transcript: the same look, without the waiting. */
  past(message) {
    if (message.html) this.add(prose(message.html));
    for (const part of message.parts ?? []) if (part.kind === "tool_call") this.toolCall(part);
  }
}
