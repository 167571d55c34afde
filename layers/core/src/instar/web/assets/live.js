// The socket: events of one session in order, each once; messages that survive a lost connection.

import { post, randomId } from "/assets/api.js";

const FIRST_WAIT = 400;
const LONGEST_WAIT = 10000;

export class Live {
  /** Calls `onEvent(event)` for events and receipts, `onState("on" | "off" | "trying")`. */
  constructor(session, after, { onEvent, onState }) {
    Object.assign(this, { session, n: after, onEvent, onState });
    this.unsent = new Map();
    this.wait = FIRST_WAIT;
    this.closed = false;
    this.connect();
  }

  async connect() {
    if (this.closed) return;
    this.onState("trying");
    try {
      const { ticket, url } = await post("/v1/ticket");
      if (this.closed) return;
      this.socket = new WebSocket(`${url}?ticket=${encodeURIComponent(ticket)}`);
    } catch {
      this.again();
      return;
    }
    this.socket.onopen = () => this.opened();
    this.socket.onmessage = (message) => this.received(JSON.parse(message.data));
    this.socket.onclose = () => this.again();
  }

  opened() {
    this.wait = FIRST_WAIT;
    this.onState("on");
    this.put({ kind: "resume", session: this.session, after: this.n });
    for (const frame of this.unsent.values()) this.put(frame);
  }

  again() {
    if (this.closed) return;
    this.onState("off");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.wait * (0.7 + Math.random() * 0.6));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  received(event) {
    if (event.session !== this.session) return;
    if (event.kind === "accepted" || event.kind === "error") this.unsent.delete(event.id);
    else if (event.n <= this.n) return;
    else this.n = event.n;
    this.onEvent(event);
  }

  /** Sends a message, now or when there is a connection again; the id makes it one message. */
  send(text) {
    const frame = { kind: "message", session: this.session, text, id: randomId(), receipt: true };
    this.unsent.set(frame.id, frame);
    this.put(frame);
    return frame.id;
  }

  stop() {
    this.put({ kind: "stop", session: this.session });
  }

  put(frame) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }
}
