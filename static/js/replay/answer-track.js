// The answers of the shown queries in the past, as the server plays them: read ahead, and told as messages of live answers. Pure.

import { cut } from "./pages.js";

const LEAD_MS = 60_000; // before the time of a jump, so that there are some events
const FIRST_MS = 1000; // after that time, of the first page, so that it comes soon
const MOST_ROWS = 200_000; // that are kept; without the oldest ones, a jump asks for all anew

export class AnswerTrack {
  queries;
  revisions;
  ask;
  clock;
  onTold;
  onRefused;
  onError;

  #pages = []; // {fromMs, untilMs, rows, messages: [[atMs, message], ...]}; the first begins with snapshots of all queries
  #next = { page: 0, message: 0 }; // the first message that is not told
  #ended = new AbortController();
  #asking = false;
  #cut = false; // whether the first pages are forgotten

  /**
   * @param {Record<string, any>} parts `queries()`, the numbers of the shown queries; `revisions()`, which change when one is edited;
   *   `ask(queries, span, signal)`, a promise of a page; `clock`; `onTold()`, called when more is known; `onRefused(errors)`, with
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
    if (this.idle || this.#asking) return;
    if (this.#pages.length > 0 && (!this.#leadsTo(atMs) || (jumps && this.#cut))) this.#restart();
    this.#forget(mostRows);
    if (!(this.untilMs >= Math.min(wantedMs, this.clock.toMs))) this.#ask(atMs, wantedMs);
  }

  /** Return whether the next pages come to a time without a new beginning. */
  #leadsTo(ms) {
    return ms >= this.fromMs && ms - LEAD_MS <= this.untilMs;
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

  async #ask(atMs, wantedMs) {
    const { signal } = this.#ended;
    const { fromMs: first, toMs: last } = this.clock;
    const begins = this.#pages.length === 0;
    const fromMs = begins ? Math.max(first, atMs - LEAD_MS) : this.#pages.at(-1).untilMs;
    const toMs = Math.max(fromMs + 1, Math.min(this.untilMs >= atMs ? wantedMs : atMs + FIRST_MS, last));
    this.#asking = true;
    try {
      const page = await this.ask(this.wanted, { fromMs, toMs }, signal);
      if (signal.aborted) return;
      this.#pages.push({
        fromMs: page.fromMs,
        untilMs: page.untilMs,
        rows: page.rows.length,
        messages: messagesOf(page),
      });
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
