// What the page asks the server to send: the answers of queries, the objects in view, and how queries are answered.

import { Gathered } from "./gathered.js";
import { paddedBox } from "./geometry.js";
import { heldAlike } from "./store.js";

const VIEW_MARGIN = 0.2; // of the viewport, on every side

export class Subscriptions {
  /** @param {object} parts `store`; `socket`; `bounds()`, the map's rectangle; `shown(stream)`, whether a stream is switched on */
  constructor(parts) {
    Object.assign(this, parts);
    this.queries = new Set();
    this.withRoles = new Set(); // queries for which the page shows how they are answered
    this.lastView = null;
    // One message for many queries: the server carries out a limited number of messages a second.
    this.gathered = new Gathered((queries) => {
      for (const [held, part] of heldAlike(this.store, queries)) {
        this.socket.send({ type: "query.subscribe", queries: part, format: "arrow", joined: true, ...(held && { held }) });
      }
    });
  }

  /** Forget what was subscribed to: a new connection knows of nothing. */
  reset() {
    this.queries.clear();
    this.gathered.clear();
    this.lastView = null;
  }

  /** Subscribe to what a message of the server brings, after the store has applied it. */
  follow(message) {
    if (message.type === "hello") this.view();
    if (["answer.snapshot", "answer.resumed"].includes(message.type) && this.withRoles.has(message.query)) {
      this.#askForRoles(message.query);
    }
    if (message.type === "query.status" && this.store.maps(message.space)) this.#query(message);
  }

  /** Subscribe to the objects in view, unless that is what the server sends already. */
  view() {
    const streams = [...this.store.streams.values()].filter((s) => s.enabled !== false && this.shown(s.name)).map((s) => s.name);
    const { lo, hi } = paddedBox(this.bounds(), VIEW_MARGIN);
    const message = streams.length > 0
      ? { type: "view.subscribe", streams, area: { lo, hi }, format: "arrow", joined: true }
      : { type: "view.unsubscribe" };
    const spaces = streams.map((name) => this.store.streams.get(name).space); // a stream may come back in another space
    const text = JSON.stringify([message, spaces]);
    if (!this.socket.open || text === this.lastView) return;
    this.lastView = text;
    this.socket.send(message);
    if (streams.length === 0) this.store.dropViews();
  }

  /** Subscribe to how a query is answered, or end that. */
  roles(query, asked) {
    if (asked) {
      this.withRoles.add(query);
      this.#askForRoles(query);
    } else {
      this.withRoles.delete(query);
      this.socket.send({ type: "roles.unsubscribe", query });
    }
  }

  #askForRoles(query) {
    this.socket.send({ type: "roles.subscribe", query });
  }

  #query({ query, status }) {
    if (status === "cancelled") this.queries.delete(query);
    else if (!this.queries.has(query) && status !== "failed") {
      this.queries.add(query);
      this.gathered.add(query);
    }
  }
}
