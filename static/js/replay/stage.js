// Puts the past in place of the live answers in the page's store, and back. Pure.
//
// The panels and the map read one store. During a replay its objects and answers are those of the past, and what the server
// sends goes on in a second store, `behind`, so that it is all there as soon as the replay ends.

import { createStore } from "../store/store.js";
import { recolour } from "../store/store-colours.js";

// What the store knows from answers, besides its objects.
const ANSWERED = [
  "views",
  "answers",
  "figures",
  "sketched",
  "held",
  "going",
  "places",
  "told",
  "encounters",
  "events",
  "eventsSeen",
  "unread",
  "dataMs",
  "lagMs",
  "resyncMs",
];
// Messages about how things stand, not about what is where; both stores take them.
const OF_BOTH = ["hello", "stream.list", "query.status", "query.listed"];
const TOPICS = ["objects", "queries", "places", "figures", "pairs", "streams", "events", "status", "selection"];

export class Stage {
  constructor(store) {
    this.store = store;
    this.behind = null;
  }

  /** Whether the store shows the past. */
  get past() {
    return this.behind !== null;
  }

  /** The store that takes the live answers. */
  get live() {
    return this.behind ?? this.store;
  }

  /** Begin with an empty past. */
  enter() {
    const { store } = this;
    const behind = createStore();
    Object.assign(behind, {
      user: store.user,
      space: store.space,
      dimensions: store.dimensions,
      mapped: store.mapped,
      clockOffsetMs: store.clockOffsetMs,
    });
    behind.queries = new Map([...store.queries].map(([number, query]) => [number, { ...query }]));
    behind.streams = new Map([...store.streams].map(([name, stream]) => [name, { ...stream }]));
    swap(store, behind);
    this.behind = behind;
    store.past = true;
    store.emit(...TOPICS);
  }

  /** Show the live answers again, as they are now. */
  leave() {
    const { store, behind } = this;
    swap(store, behind);
    this.behind = null;
    store.past = false;
    store.awaited = new Set();
    for (const [name, { newestMs, heardMs }] of behind.streams) {
      if (store.streams.has(name)) Object.assign(store.streams.get(name), { newestMs, heardMs });
    }
    const known = (number) => store.queries.has(number) || store.views.has(number);
    store.dropAnswers(
      [...store.answers.keys(), ...store.figures.keys(), ...store.sketched.keys()].filter((number) => !known(number)),
    );
    for (let slot = 0; slot < store.objects.size; slot++) if (store.objects.alive[slot]) recolour(store, slot);
    store.emit(...TOPICS);
  }

  /** Apply a message of the server to where it belongs. */
  apply(message, nowMs) {
    const { store, behind } = this;
    if (!behind) return store.apply(message, nowMs);
    const answers = message.type.startsWith("answer.") || message.type === "view.status";
    if (answers || OF_BOTH.includes(message.type)) behind.apply(message, nowMs);
    if (!answers) store.apply(message, nowMs);
  }

  /** Forget what the past shows, for a jump to another time: the objects, the answers and their events. */
  clear() {
    const { store } = this;
    const empty = createStore();
    empty.eventsSeen = store.eventsSeen;
    empty.views = store.views;
    swap(store, empty);
  }

  /** Set the clocks of all streams to a time of the past, so that objects fade as they did. */
  setTime(ms, nowMs) {
    for (const stream of this.store.streams.values()) Object.assign(stream, { newestMs: ms, heardMs: nowMs });
  }
}

function swap(one, other) {
  for (const name of ANSWERED) [one[name], other[name]] = [other[name], one[name]];
  // Other modules hold the objects themselves, so their content is exchanged.
  for (const name of Object.keys(one.objects))
    [one.objects[name], other.objects[name]] = [other.objects[name], one.objects[name]];
}
