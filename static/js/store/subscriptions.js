// What the page asks the server to send: the answers of queries, the objects in view, and how queries are answered.

import { Gathered, MOST } from "./gathered.js";
import { paddedBox } from "../geometry.js";
import { heldAlike } from "./store.js";

const VIEW_MARGIN = 0.2; // of the viewport, on every side
const LINGER_MS = 5000; // a query that was scrolled away, or is off the map, may come back at once
const BEGINNINGS = ["answer.snapshot", "answer.resumed"];

export class Subscriptions {
  store;
  socket;
  bounds;
  shown;
  wanted;
  whole;
  watched;
  now;
  later;

  /**
   * @param {Record<string, any>} parts `store`; `socket`; `bounds()`, the map's rectangle; `shown(stream)`, whether a stream is switched on;
   *   `wanted(query, area)`, whether the page shows a query while the map shows an area; `whole()`, streams that the page shows
   *   everywhere; `watched()`, keys of objects that it shows wherever they are, by stream; `now()`, in milliseconds; `later(run, ms)`
   */
  constructor({
    now = () => performance.now(),
    later = (run, ms) => setTimeout(run, ms),
    whole = () => [],
    watched = () => ({}),
    ...parts
  }) {
    Object.assign(this, { now, later, whole, watched, ...parts });
    this.queries = new Set(); // queries to which the page is subscribed
    this.begun = new Set(); // of these, the ones whose answers have begun
    this.leaving = new Map(); // of these, the ones that are not shown any more -> when they are unsubscribed
    this.sweeping = false;
    this.withRegions = false; // whether the page shows the regions of the engines
    this.withRoles = new Set(); // queries for which the page shows how they are answered
    this.lastView = null;
    // One message for many queries: the server carries out a limited number of messages a second.
    this.gathered = new Gathered((queries) => {
      for (const [held, part] of heldAlike(this.store, queries)) {
        this.socket.send({
          type: "query.subscribe",
          queries: part,
          format: "arrow",
          joined: true,
          ...(held && { held }),
        });
      }
    });
  }

  /** Forget what was subscribed to: a new connection knows of nothing. */
  reset() {
    for (const known of [this.queries, this.begun, this.leaving]) known.clear();
    this.gathered.clear();
    this.lastView = null;
  }

  /** Return whether a message is no answer, or one that the page waits for: others were on their way as it unsubscribed. */
  expects({ type, query }) {
    if (this.store.views.has(query)) return true;
    if (type === "answer.change") return this.begun.has(query);
    return !BEGINNINGS.includes(type) || this.queries.has(query);
  }

  /** Subscribe to what a message of the server brings, after the store has applied it. */
  follow(message) {
    if (message.type === "hello") this.view();
    if (message.type === "hello" && this.withRegions) this.regions(true);
    if (BEGINNINGS.includes(message.type)) this.#begin(message.query);
    if (message.type === "query.status") this.#follow([message]);
    if (message.type === "query.listed") this.#follow(message.queries);
  }

  /** Subscribe to the queries that the page shows now; unsubscribe from those that it has not shown for a while. */
  refresh() {
    this.#follow([...this.store.queries.values()]);
    const area = this.#area();
    const ends = this.now() + LINGER_MS;
    for (const number of this.queries) {
      const query = this.store.queries.get(number);
      if (query && this.wanted(query, area)) this.leaving.delete(number);
      else if (!this.leaving.has(number)) this.leaving.set(number, ends);
    }
    this.#sweepLater();
  }

  /** Subscribe to the objects in view, of some streams to all objects, and to the watched ones, unless the server sends just these already. */
  view() {
    const known = [...this.store.streams.values()].filter((s) => s.enabled !== false).map((s) => s.name);
    const whole = this.whole().filter((name) => known.includes(name));
    const streams = known.filter((name) => this.shown(name) || whole.includes(name));
    const watched = Object.fromEntries(Object.entries(this.watched()).filter(([name]) => known.includes(name)));
    const none = streams.length === 0 && Object.keys(watched).length === 0;
    const more = { ...(whole.length > 0 && { whole }), ...(Object.keys(watched).length > 0 && { watched }) };
    const message = none
      ? { type: "view.unsubscribe" }
      : { type: "view.subscribe", streams, area: this.#area(), ...more, format: "arrow", joined: true };
    const spaces = known.map((name) => this.store.streams.get(name).space); // a stream may come back in another space
    const text = JSON.stringify([message, spaces]);
    if (!this.socket.open || text === this.lastView) return;
    this.lastView = text;
    this.socket.send(message);
    if (none) this.store.dropViews();
  }

  /** Subscribe to how a query is answered, as soon as its answer has begun, or end that. */
  roles(query, asked) {
    if (asked) {
      this.withRoles.add(query);
      if (this.begun.has(query)) this.#askForRoles(query);
    } else {
      this.withRoles.delete(query);
      this.socket.send({ type: "roles.unsubscribe", query });
    }
  }

  /** Subscribe to the regions of the spaces on the map, or end that. */
  regions(asked) {
    this.withRegions = asked;
    for (const space of this.store.mapped ?? [this.store.space]) {
      this.socket.send({ type: asked ? "regions.subscribe" : "regions.unsubscribe", space });
    }
  }

  #askForRoles(query) {
    this.socket.send({ type: "roles.subscribe", query });
  }

  #begin(query) {
    if (this.queries.has(query)) this.begun.add(query);
    if (this.withRoles.has(query)) this.#askForRoles(query);
  }

  #end(query) {
    for (const known of [this.queries, this.begun, this.leaving]) known.delete(query);
  }

  #area() {
    const { lo, hi } = paddedBox(this.bounds(), VIEW_MARGIN);
    return { lo, hi };
  }

  #follow(queries) {
    const area = this.#area();
    for (const { query, status } of queries) {
      if (status === "cancelled") this.#end(query);
      const known = this.store.queries.get(query);
      if (!known || status === "failed" || this.queries.has(query) || !this.wanted(known, area)) continue;
      this.queries.add(query);
      this.gathered.add(query);
    }
  }

  #sweepLater() {
    if (this.sweeping || this.leaving.size === 0) return;
    this.sweeping = true;
    this.later(() => this.#sweep(), LINGER_MS);
  }

  /** Unsubscribe from the queries whose time has come. */
  #sweep() {
    this.sweeping = false;
    const now = this.now();
    const gone = [...this.leaving].filter(([, ends]) => ends <= now).map(([query]) => query);
    for (const query of gone) this.#end(query);
    for (let i = 0; i < gone.length; i += MOST)
      this.socket.send({ type: "query.unsubscribe", queries: gone.slice(i, i + MOST) });
    this.store.dropAnswers(gone);
    this.#sweepLater();
  }
}
