// Requests to the server, and the WebSocket of a session, which reconnects when the connection is lost.

const VERSION = 1;
const PING_MS = 25000;

/** Sends a request to the server. A refusal is thrown as an error with the server's code and message. */
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ v: VERSION, ...body }),
  };
  const response = await fetch(path, options).catch(() => { throw new Error("The server does not answer. Is it still running?"); });
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  throw Object.assign(new Error(answer?.message ?? `The server answered with status ${response.status}.`), { code: answer?.code });
}

export class Connection {
  /** `first` is the first message, `{type: "hello" | "watch", token}`; `handlers` has a function per type of message. */
  constructor(first, handlers) {
    this.first = first;
    this.handlers = handlers;
    this.attempts = 0;
    this.isClosed = false;
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/ws`);
    this.socket.addEventListener("open", () => {
      this.send(this.first);
      this.ping = setInterval(() => this.send({ type: "ping" }), PING_MS);
    });
    this.socket.addEventListener("message", (event) => this.onMessage(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => this.onClose());
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ v: VERSION, ...message }));
  }

  onMessage(message) {
    const { type, code, reason } = message;
    if (type === "welcome") {
      this.attempts = 0;
      showState("");
    }
    // After these messages the server would refuse a new connection, too.
    if ((type === "farewell" && reason !== "shutting-down") || (type === "refused" && code === "no-such-session")) this.close();
    this.isFull = type === "refused" && code === "full";
    this.handlers[type]?.(message);
  }

  onClose() {
    clearInterval(this.ping);
    if (this.isClosed) return;
    showState(this.isFull ? "waiting for a free place …" : "connection lost, trying again …");
    this.attempts += 1;
    const wait = Math.min(8000, 250 * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    this.retry = setTimeout(() => this.open(), wait);
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.retry);
    clearInterval(this.ping);
    this.socket.close();
    showState("");
  }
}

function showState(text) {
  document.getElementById("connection-state").textContent = text;
}
