// The answers of the shown queries in the past, as the server plays them: read ahead, and told as messages of live answers. Pure.
//
// After a jump, the server is first asked for the scene: the answers at that time which follow from where objects are. Those of
// rules, encounters and the like, and events, need the time before, which it computes next.

import { cut } from "./pages.js";

const LEAD_MS = 60_000; // before the time of a jump, so that there are some events
const FIRST_MS = 1000; // after that time, of the first page, so that it comes soon
export const NONE = 0; // how much of the answers at a time is known
export const SCENE = 1;
export const ALL = 2;
const MOST_ROWS = 200_000; // that are kept; without the oldest ones, a jump asks for all anew

export class AnswerTrack {
  queries;
  revisions;
  ask;
  askScene;
  clock;
  onTold;
  onRefused;
  onError;

  #pages = []; // {fromMs, untilMs, rows, messages: [[atMs, message], ...]}; the first begins with snapshots of all queries
  #next = { page: 0, message: 0 }; // the first message that is not told
  #ended = new AbortController();
  #asking = false;
  #beginMs = NaN; // where the first page begins
  #scene = /** @type {any} */ (null); // {atMs, queries, messages}
  #cut = false; // whether the first pages are forgotten

  /**
   * @param {Record<string, any>} parts `queries()`, the numbers of the shown queries; `revisions()`, which change when one is edited;
   *   `ask(queries, span, signal)`, a promise of a page; `askScene(queries, span, atMs, signal)`, if any, one of the answers at a
   *   time, where `span` is that of the next page; `clock`; `onTold()`, called when more is known; `onRefused(errors)`, with
   *   the queries that cannot be played; `onError(text)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.wanted = [];
    this.asked = "[]";
    this.on = true;
    this.failed = false;
  }

  get idle() {
    return !this.on || this.failed || this.wanted.length === 0;
  }

  get fromMs() {
    return this.#pages[0]?.fromMs ?? NaN;
  }

  /** Up to when the answers are known. */
  get untilMs() {
    return this.idle ? Infinity : (this.#pages.at(-1)?.untilMs ?? NaN);
  }

  knows(ms) {
    return this.idle || (ms >= this.fromMs && ms <= this.untilMs);
  }

  /** Return how much is known of the answers at a time: ALL, SCENE or NONE. */
  known(ms) {
    if (this.knows(ms)) return ALL;
    return this.#scene?.atMs === ms ? SCENE : NONE;
  }

  /** Return the queries whose answers at a time are not known. */
  missing(ms) {
    const known = { [ALL]: this.wanted, [SCENE]: this.#scene?.queries, [NONE]: [] }[this.known(ms)];
    return this.wanted.filter((query) => !known.includes(query));
  }

  /** Return up to when answers are computed, and which share that is of what a time needs; NaN for what is not known. */
  progress(ms) {
    const { untilMs } = this;
    return { untilMs, share: this.knows(ms) ? NaN : (untilMs - this.#beginMs) / (ms - this.#beginMs) };
  }

  /** Follow which queries are shown; return whether these are others. */
  follow() {
    const queries = this.on ? this.queries() : [];
    const asked = JSON.stringify(queries.length > 0 ? [queries, this.revisions()] : []);
    if (asked === this.asked) return false;
    Object.assign(this, { wanted: queries, asked });
    this.#restart();
    return true;
  }

  end() {
    this.#ended.abort();
  }

  /** Ask for the page that comes next, if the answers are not known up to a time; `jumps`: `seek` follows. */
  readAhead(atMs, wantedMs, jumps = false, mostRows = MOST_ROWS) {
    if (this.idle) return;
    if (!this.#leadsTo(atMs) || (jumps && this.#cut)) this.#begin(atMs);
    if (this.#asking) return;
    this.#forget(mostRows);
    if (this.askScene && this.#pages.length === 0 && this.known(atMs) === NONE) this.#findScene(atMs);
    else if (!(this.untilMs >= Math.min(wantedMs, this.clock.toMs))) this.#ask(atMs, wantedMs);
  }

  /** Return whether the next pages come to a time without a new beginning. */
  #leadsTo(ms) {
    return ms >= this.#beginMs && ms - LEAD_MS <= (this.#pages.at(-1)?.untilMs ?? this.#beginMs);
  }

  #begin(atMs) {
    this.#restart();
    this.#beginMs = Math.max(this.clock.fromMs, atMs - LEAD_MS);
  }

  /** Return the messages of the scene at a time at which it is known. */
  scene() {
    return this.#scene.messages.map(([, message]) => message);
  }

  /** Return all messages that lead to a known time from the beginning of what is known. */
  seek(ms) {
    this.#next = { page: 0, message: 0 };
    return this.advance(ms);
  }

  /** Return the messages up to a known time that were not returned before. */
  advance(ms) {
    const told = [];
    for (; !this.idle && this.#next.page < this.#pages.length; this.#next = { page: this.#next.page + 1, message: 0 }) {
      const { messages } = this.#pages[this.#next.page];
      for (; this.#next.message < messages.length; this.#next.message++) {
        const [atMs, message] = messages[this.#next.message];
        if (atMs > ms) return told;
        told.push(message);
      }
      if (this.#next.page + 1 === this.#pages.length) break;
    }
    return told;
  }

  #restart() {
    this.#ended.abort();
    this.#ended = new AbortController();
    this.#pages = [];
    this.#beginMs = NaN;
    this.#scene = null;
    this.#next = { page: 0, message: 0 };
    this.#asking = this.failed = this.#cut = false;
  }

  /** Forget the pages that were told, if there are too many rows. */
  #forget(mostRows) {
    const told = this.#next.page;
    if (told === 0 || this.#pages.reduce((sum, page) => sum + page.rows, 0) <= mostRows) return;
    this.#pages.splice(0, told);
    this.#next.page = 0;
    this.#cut = true;
  }

  #findScene(atMs) {
    const span = this.#span(atMs, atMs);
    return this.#told(
      (signal) => this.askScene(this.wanted, span, atMs, signal),
      (page) => (this.#scene = { atMs, queries: page.queries, messages: messagesOf(page) }),
    );
  }

  #ask(atMs, wantedMs) {
    const span = this.#span(atMs, wantedMs);
    return this.#told(
      (signal) => this.ask(this.wanted, span, signal),
      (page) =>
        this.#pages.push({
          fromMs: page.fromMs,
          untilMs: page.untilMs,
          rows: page.rows.length,
          messages: messagesOf(page),
        }),
    );
  }

  /** Return the span of the next page. */
  #span(atMs, wantedMs) {
    const fromMs = this.#pages.at(-1)?.untilMs ?? this.#beginMs;
    const toMs = Math.min(this.untilMs >= atMs ? wantedMs : atMs + FIRST_MS, this.clock.toMs);
    return { fromMs, toMs: Math.max(fromMs + 1, toMs) };
  }

  /** Ask for a page, keep it, and tell of it. */
  async #told(ask, keep) {
    const { signal } = this.#ended;
    this.#asking = true;
    try {
      const page = await ask(signal);
      if (signal.aborted) return;
      keep(page);
      this.onRefused(page.refused ?? {});
    } catch (error) {
      if (signal.aborted) return;
      this.failed = true;
      this.onError(error.message);
    } finally {
      if (!signal.aborted) this.#asking = false;
    }
    this.onTold();
  }
}

/** Return what a page of answers says as messages, each with its time: a snapshot of each query if it begins, then changes. */
export function messagesOf({ begins, fromMs, queries, rows }) {
  const messages = [];
  const begin = new Map(
    (begins ? queries : []).map((query) => [
      query,
      { type: "answer.snapshot", query, resync: false, rows: cut(rows, 0, 0) },
    ]),
  );
  for (let start = 0, end = 1; end <= rows.length; end++) {
    const alike = end < rows.length && rows.queries[end] === rows.queries[start] && rows.atMs[end] === rows.atMs[start];
    if (alike) continue;
    const [query, atMs, part] = [rows.queries[start], rows.atMs[start], cut(rows, start, end)];
    if (atMs <= fromMs && begin.has(query)) begin.get(query).rows = part;
    else messages.push([atMs, { type: "answer.change", query, rows: part }]);
    start = end;
  }
  return [...[...begin.values()].map((message) => [fromMs, message]), ...messages];
}
