// The only module that talks to the websocket: connects, reconnects with back-off, matches replies to requests.

import { columnsOf, readFrame } from "./frames.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const REPLY_MS = 20_000;
// The server says something every second. After this many seconds in which nothing came the connection is lost, whatever the browser
// believes: packets may be dropped without a word. They are counted, so that a page that slept does not take its sleep for silence.
const SILENT_S = 8;
const SIGNED_OUT_CODES = [4401, 4403];

/** An error that the server answered a request with. */
export class ServerError extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code ?? "";
  }
}

export class Socket {
  /**
   * @param {string} path of the websocket on this server
   * @param {object} parts `Arrow`; `onMessage(message)`; `onState(state)` with "open", "reconnecting", "offline" or "signed-out";
   *   `onOpen()` after every (re)connection
   */
  constructor(path, parts) {
    this.url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
    this.parts = parts;
    this.waitMs = FIRST_WAIT_MS;
    this.lastId = 0;
    this.pending = new Map();
    this.silentS = 0;
    setInterval(() => this.#listen(), 1000);
    window.addEventListener("online", () => this.#retryNow());
    window.addEventListener("offline", () => this.parts.onState("offline"));
  }

  connect() {
    const socket = new WebSocket(this.url);
    this.silentS = 0;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.silentS = 0;
      this.waitMs = FIRST_WAIT_MS;
      this.parts.onState("open");
      this.parts.onOpen();
    };
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code }) => this.#closed(code);
    this.socket = socket;
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Send a message, unless the line is down: what matters is sent again after a reconnection. */
  send(message) {
    if (this.open) this.socket.send(JSON.stringify(message));
  }

  /** Send a message and return a promise of the reply; it is rejected with the server's error. */
  request(message) {
    if (!this.open) return Promise.reject(new ServerError({ code: "offline", message: "The connection is down. Try again in a moment." }));
    const id = String(++this.lastId);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#settle(id);
        reject(new ServerError({ code: "timeout", message: "The server did not answer in time." }));
      }, REPLY_MS);
      this.pending.set(id, { resolve, reject, timer });
      this.send({ ...message, id });
    });
  }

  #receive(data) {
    this.silentS = 0;
    const message = typeof data === "string" ? JSON.parse(data) : readFrame(this.parts.Arrow, data);
    if (Array.isArray(message.rows) && message.type !== "table.rows") message.rows = columnsOf(message.rows);
    const asked = message.id === undefined || message.id === null ? undefined : this.#settle(String(message.id));
    if (message.type !== "error") this.parts.onMessage(message);
    if (message.type === "error" && !asked) this.parts.onMessage(message);
    if (asked && message.type === "error") asked.reject(new ServerError(message));
    else asked?.resolve(message);
  }

  #settle(id) {
    const asked = this.pending.get(id);
    clearTimeout(asked?.timer);
    this.pending.delete(id);
    return asked;
  }

  #closed(code) {
    for (const id of [...this.pending.keys()]) {
      this.#settle(id).reject(new ServerError({ code: "offline", message: "The connection was lost before the server answered." }));
    }
    if (SIGNED_OUT_CODES.includes(code)) return this.parts.onState("signed-out");
    this.parts.onState(navigator.onLine === false ? "offline" : "reconnecting");
    // Half of the wait is left to chance, so that many browsers do not come back in one moment.
    this.timer = setTimeout(() => this.connect(), this.waitMs * (0.5 + Math.random() / 2));
    this.waitMs = Math.min(this.waitMs * 2, LONGEST_WAIT_MS);
  }

  /** Give up a connection on which the server is silent, and one that does not come about. */
  #listen() {
    if (!this.open && this.socket?.readyState !== WebSocket.CONNECTING) return;
    if (++this.silentS < SILENT_S) return;
    // It may take the browser long to find that nobody answers to its good-bye.
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.#closed();
  }

  #retryNow() {
    if (this.open) return this.parts.onState("open"); // it outlived the break
    if (this.socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(this.timer);
    this.connect();
  }
}
