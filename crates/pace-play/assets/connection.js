// The WebSocket of one encounter: introduces the client, sends actions, and reconnects after a lost connection.

const VERSION = 1;
const PING_MS = 25000;

export class Connection {
  /** `introduction` is `{type: "hello" | "watch", token}`; `handlers` has a function per type of message. */
  constructor(introduction, handlers) {
    this.introduction = introduction;
    this.handlers = handlers;
    this.attempts = 0;
    this.isClosed = false;
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/ws`);
    this.socket.addEventListener("open", () => {
      this.say(this.introduction);
      this.ping = setInterval(() => this.say({ type: "ping" }), PING_MS);
    });
    this.socket.addEventListener("message", (event) => this.hear(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => this.lost());
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ v: VERSION, ...message }));
  }

  /** The person acts; `seq` counts their actions. */
  act(seq, action) {
    this.say({ type: "act", seq, action, at_ms: Date.now() });
  }

  hear(message) {
    if (message.type === "welcome") {
      this.attempts = 0;
      state("");
    }
    // These are for good: trying again would only be refused again.
    if (message.type === "farewell" && message.reason !== "shutting-down") this.close();
    if (message.type === "refused" && message.code === "no-such-session") this.close();
    this.isFull = message.type === "refused" && message.code === "full";
    this.handlers[message.type]?.(message);
  }

  lost() {
    clearInterval(this.ping);
    if (this.isClosed) return;
    state(this.isFull ? "waiting for a free place …" : "connection lost, trying again …");
    this.attempts += 1;
    const wait = Math.min(8000, 250 * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    this.retry = setTimeout(() => this.open(), wait);
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.retry);
    clearInterval(this.ping);
    this.socket.close();
    state("");
  }
}

function state(text) {
  document.getElementById("link-state").textContent = text;
}
