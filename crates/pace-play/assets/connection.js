// Requests to the server, and the WebSocket of one encounter: it introduces the client, sends actions, and reconnects when it is lost.

const VERSION = 1;
const PING_MS = 25000;

/** Sends a request to the server; a refusal is thrown as an error with its code and message. */
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ v: VERSION, ...body }),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { code: "gone" });
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || answer === null) {
    throw Object.assign(new Error(answer?.message ?? `The server answered with status ${response.status}.`), { code: answer?.code });
  }
  return answer;
}

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
