// Plays the past in the page's store: asks for pages ahead of the clock, and applies what they tell when its time comes.

import { paddedBox } from "../geometry.js";
import { ALL, NONE, SCENE } from "./answer-track.js";
import { ElementBuffer, MOST_ROWS } from "./element-buffer.js";

const AHEAD_S = 20; // of playing, that are read ahead
const LEAST_AHEAD_MS = 60_000;
const KEPT_MS = 300_000; // of what was played, for short ways back
const STEP_MS = 50; // of playing: at high speeds, only the last report of each object in such a step is asked for
const EVERY_UP_TO = 10; // but at this speed and below, and while the replay is paused, all reports
const MARGIN = 0.5; // of the view, on every side, that is asked for as well

export class Player {
  lifeMs;
  store;
  stage;
  clock;
  api;
  answers;
  bounds;
  streams;
  now;
  onError;
  onJump;

  #tracks = new Map(); // name of a stream -> {name, view, lifeMs, stepMs, buffer, asking, failed, knows, untilMs}
  #ended = new AbortController();
  #views = 0;

  /**
   * @param {Record<string, any>} parts `store`, `stage`, `clock`, `api`; `answers`, an AnswerTrack; `bounds()` of the map; `streams()`, names of
   *   the stored streams that are shown; `lifeMs(stream)`, how long its objects are shown that are not heard again; `now()`; `onError(text)`; `onJump()`, called after a jump to another time
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.shownMs = NaN; // the time that the store shows
    this.answered = NONE; // how much of the answers it shows, too
    this.aiming = false;
  }

  /** Whether the clock waits for pages. */
  get waiting() {
    const { objects, answers } = this.state();
    return objects || answers !== null;
  }

  /**
   * Return for what the clock waits: `{objects, answers}`. `objects` says whether it waits for those; `answers` is null, or says how
   * far the answers are: `{queries, missing, untilMs, share}`, with how many there will be and how many of them are not shown.
   */
  state() {
    const { answers, clock } = this;
    const waits = (track) =>
      !track.knows(clock.atMs) || (clock.playing && track.untilMs <= clock.atMs && clock.atMs < clock.toMs);
    const missing = answers.missing(clock.atMs).length;
    return {
      objects: [...this.#tracks.values()].some(waits),
      answers: waits(answers) ? { queries: answers.wanted.length, missing, ...answers.progress(clock.atMs) } : null,
    };
  }

  end() {
    this.#ended.abort();
    this.answers.end();
  }

  /** Ask for pages of another area if the map left the one of the pages, or shows much less. */
  moved() {
    const { west, south, east, north } = this.bounds();
    const { around } = this;
    const inside =
      around && west >= around.west && east <= around.east && south >= around.south && north <= around.north;
    if (inside && (east - west) * 8 > around.east - around.west) return;
    this.#restart();
  }

  /** Follow which streams and queries are shown. */
  follow() {
    const names = this.streams();
    const gone = [...this.#tracks.keys()].filter((name) => !names.includes(name));
    const fresh = names.filter((name) => !this.#tracks.has(name));
    for (const name of gone) this.#tracks.delete(name);
    for (const name of fresh) this.#tracks.set(name, this.#track(name));
    const others = this.answers.follow();
    if (!this.area) this.#restart();
    else if (others || gone.length > 0 || fresh.length > 0) this.seek(this.clock.atMs);
  }

  /** Follow another speed, or a pause: read on in other steps. */
  pace() {
    const others = [...this.#tracks.values()].filter((track) => track.buffer && track.stepMs !== this.#stepMs(track));
    for (const { name } of others) this.#tracks.set(name, this.#track(name));
    if (others.length > 0) this.seek(this.clock.atMs);
  }

  /** Set the clock to a time to which the replay will jump, while the user still looks for it. */
  aim(ms) {
    this.clock.seek(ms);
    this.aiming = true;
  }

  /** Jump to a time. What is on the map stays until the pages of that time are there. */
  seek(ms) {
    this.clock.seek(ms);
    this.aiming = false;
    for (const track of this.#all()) track.failed = false;
    this.shownMs = NaN;
    this.tick();
  }

  /** Let the clock go on, and show its time as far as it is known. */
  tick() {
    if (this.aiming) return;
    const known = Math.min(
      ...this.#all().map((track) => (track.knows(this.clock.atMs) ? track.untilMs : this.clock.atMs)),
    );
    const { playing } = this.clock;
    const atMs = this.clock.advance(this.now(), known);
    if (playing && !this.clock.playing) this.pace(); // the end
    this.#readAhead();
    if ([...this.#tracks.values()].some((track) => !track.knows(atMs))) return;
    // Objects are shown at once; answers, which take the server longer, follow.
    const answered = this.answers.known(atMs);
    if (Number.isNaN(this.shownMs) || atMs < this.shownMs || answered > this.answered) this.#jump(atMs, answered);
    else if (atMs > this.shownMs) this.#goOn(atMs);
    this.answered = answered;
    this.stage.setTime(atMs, this.now());
  }

  #all() {
    return [...this.#tracks.values(), this.answers];
  }

  /** Return the step in which elements of a stream are asked for; half of a lifetime at most, so that nobody seems to be gone. */
  #stepMs({ lifeMs }) {
    const { playing, speed } = this.clock;
    return playing && speed > EVERY_UP_TO ? Math.min(STEP_MS * speed, Math.floor(lifeMs / 2)) : 0;
  }

  #track(name) {
    const track = {
      lifeMs: this.lifeMs(name),
      stepMs: 0,
      view: -++this.#views, // below the numbers of all queries
      buffer: null,
      asking: false,
      knows: (ms) => Boolean(track.buffer?.knows(ms)) || track.failed,
      failed: false,
      get untilMs() {
        return track.failed ? Infinity : track.buffer.untilMs;
      },
      name,
    };
    return track;
  }

  #restart() {
    const { west, south, east, north } = this.bounds();
    const [across, along] = [MARGIN * (east - west), MARGIN * (north - south)];
    this.around = { west: west - across, south: south - along, east: east + across, north: north + along };
    const { lo, hi } = paddedBox(this.bounds(), MARGIN);
    this.area = { west: lo[0], south: lo[1], east: hi[0], north: hi[1] };
    this.#ended.abort();
    this.#ended = new AbortController();
    for (const name of this.#tracks.keys()) this.#tracks.set(name, this.#track(name));
    this.shownMs = NaN;
    this.tick();
  }

  #readAhead() {
    const { atMs, speed } = this.clock;
    const wantedMs = atMs + Math.max(LEAST_AHEAD_MS, AHEAD_S * 1000 * speed);
    for (const track of this.#tracks.values()) {
      if (track.asking || track.failed) continue;
      if (track.buffer && !track.buffer.knows(atMs)) track.buffer = null;
      const { buffer } = track;
      const short =
        buffer &&
        buffer.untilMs < Math.min(wantedMs, this.clock.toMs) &&
        (buffer.length < MOST_ROWS || buffer.untilMs <= atMs);
      if (!buffer || short) this.#ask(track, wantedMs);
      track.buffer?.forget(atMs - KEPT_MS);
    }
    this.answers.readAhead(atMs, wantedMs, Number.isNaN(this.shownMs));
  }

  async #ask(track, wantedMs) {
    const { signal } = this.#ended;
    const { buffer } = track;
    const fromMs = buffer?.untilMs ?? this.clock.atMs;
    if (!buffer) track.stepMs = this.#stepMs(track);
    track.asking = true;
    try {
      const span = { fromMs, toMs: Math.max(fromMs + 1, Math.min(wantedMs, this.clock.toMs)) };
      const page = await this.api.elements(
        track.name,
        this.area,
        span,
        { scene: !buffer, stepMs: track.stepMs },
        signal,
      );
      if (buffer)
        buffer.add(page); // which may have been given up meanwhile
      else track.buffer ??= new ElementBuffer(page);
    } catch (error) {
      if (error.name === "AbortError") return;
      track.failed = true;
      this.onError(`${this.store.streams.get(track.name)?.title ?? track.name}: ${error.message}`);
    } finally {
      track.asking = false;
    }
    if (!signal.aborted) this.tick();
  }

  #jump(atMs, answered) {
    this.stage.clear();
    const tracks = this.#ready();
    this.store.views = new Map(tracks.map(({ view, name }) => [view, name]));
    for (const { view, buffer } of tracks)
      this.#apply({ type: "answer.snapshot", query: view, rows: buffer.seek(atMs) });
    this.store.awaited = new Set(this.answers.missing(atMs));
    const told = { [ALL]: () => this.answers.seek(atMs), [SCENE]: () => this.answers.scene(), [NONE]: () => [] };
    for (const message of told[answered]()) this.#apply(message);
    this.shownMs = atMs;
    this.store.emit("objects", "queries", "pairs", "places", "figures", "events", "selection");
    this.onJump();
  }

  #goOn(atMs) {
    for (const { view, buffer } of this.#ready()) {
      const rows = buffer.advance(atMs);
      if (rows.length > 0) this.#apply({ type: "answer.change", query: view, rows });
    }
    for (const message of this.answers.advance(atMs)) this.#apply(message);
    this.shownMs = atMs;
  }

  #ready() {
    return [...this.#tracks.values()].filter(({ buffer }) => buffer);
  }

  #apply(message) {
    this.store.apply(message, this.now());
  }
}
