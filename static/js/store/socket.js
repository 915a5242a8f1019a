// The only module that talks to the websocket: connects, reconnects with back-off, matches replies to requests.

import { apart, columnsOf, readFrame } from "./frames.js";
import { gettext } from "../i18n.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const REPLY_MS = 20_000;
// The server sends something every second. After this many seconds without a message the connection is lost, whatever the
// browser believes: the network may drop packets silently. A timer counts the seconds, so that a page that slept does not
// take its sleep for silence.
const SILENT_S = 8;
const FULL_CODE = 4414; // the user or the address has as many connections as it may
const CONFIRM = "confirm"; // the request has to be confirmed
const FULL_WAIT_MS = 30_000;
const SIGNED_OUT_CODES = [4401, 4403, 4410, 4413]; // the last two end a connection by a share link

/** An error with which the server answered a request. */
class ServerError extends Error {
  constructor(/** @type {Record<string, any>} */ { code, message, english, estimate }) {
    super(message);
    this.code = code ?? "";
    this.english = english ?? message; // for what looks at its words
    this.estimate = estimate; // of a query for which there may be no room
  }
}

export class Socket {
  /**
   * @param {string} path of the websocket on this server
   * @param {Record<string, any>} parts `Arrow`; `onMessage(message)`; `onState(state, code, reason)` with "open", "reconnecting", "offline",
   *   "full" or "signed-out"; `onOpen()` after every (re)connection; `onConfirm(error, message)`, which returns a promise
   *   whether a request is wanted that has to be confirmed
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
    socket.onclose = ({ code, reason }) => this.#closed(code, reason);
    this.socket = socket;
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Send a message, unless the connection is down: the page sends what matters again after it has reconnected. */
  send(message) {
    if (this.open) this.socket.send(JSON.stringify(message));
  }

  /** Send a message and return a promise of the reply; an error of the server rejects it, unless the user confirms the request. */
  async request(message) {
    try {
      return await this.#ask(message);
    } catch (error) {
      if (error.code !== CONFIRM || !(await this.parts.onConfirm?.(error, message))) throw error;
      return this.#ask({ ...message, confirmed: true });
    }
  }

  #ask(message) {
    if (!this.open)
      return Promise.reject(
        new ServerError({ code: "offline", message: gettext("The connection is down. Try again in a moment.") }),
      );
    const id = String(++this.lastId);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#settle(id);
        reject(new ServerError({ code: "timeout", message: gettext("The server did not answer in time.") }));
      }, REPLY_MS);
      this.pending.set(id, { resolve, reject, timer });
      this.send({ ...message, id });
    });
  }

  #receive(data) {
    this.silentS = 0;
    const message = typeof data === "string" ? JSON.parse(data) : readFrame(this.parts.Arrow, data);
    if (message.type === "answer.changes") return apart(message).forEach((change) => this.parts.onMessage(change));
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

  #closed(code, reason) {
    for (const id of [...this.pending.keys()]) {
      this.#settle(id).reject(
        new ServerError({ code: "offline", message: gettext("The connection was lost before the server answered.") }),
      );
    }
    if (SIGNED_OUT_CODES.includes(code)) return this.parts.onState("signed-out", code);
    if (code === FULL_CODE) this.waitMs = FULL_WAIT_MS;
    const lost = navigator.onLine === false ? "offline" : "reconnecting";
    this.parts.onState(code === FULL_CODE ? "full" : lost, code, reason);
    // Half of the wait is random, so that many browsers do not come back at the same moment.
    this.timer = setTimeout(() => this.connect(), this.waitMs * (0.5 + Math.random() / 2));
    this.waitMs = Math.min(this.waitMs * 2, LONGEST_WAIT_MS);
  }

  /** Count the seconds of silence. Give up a connection on which the server is silent, and one that does not open. */
  #listen() {
    if (!this.open && this.socket?.readyState !== WebSocket.CONNECTING) return;
    if (++this.silentS < SILENT_S) return;
    // The browser may take long to find that nobody answers its closing handshake.
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.#closed();
  }

  #retryNow() {
    if (this.open) return this.parts.onState("open"); // the connection survived
    if (this.socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(this.timer);
    this.connect();
  }
}
