// The density of one sketched stream on the map: asks for the cells in view, again as the map moves or the slider does.

import { debounced } from "../../dom.js";
import { normalisedBox, paddedBox } from "../../geometry.js";
import { filled, gettext } from "../../i18n.js";
import { pageEvents } from "../../page-events.js";
import { figure } from "./bounds.js";
import { levelFor, scaleOf, strengthAt } from "./cells.js";
import { stepFor, stepsBetween, stepText } from "./steps.js";

const MOVE_MS = 250;
const MARGIN = 0.1; // of the view, on every side
const PLAY_MS = 600;
const COUNTS = ["count", "sum"];

export class Density {
  map;
  store;
  asker;
  layer;
  isDark;
  view;
  onChoose;
  onVeil;

  /**
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `store`; `asker`, a SketchAsker; `layer`, of `createDensityLayer`; `createLegend`, as
   *   `createDensityLegend` is; `isDark()`; `view()`, the map's rectangle; `chosen`, what was shown before, as `onChoose` got it;
   *   `onChoose(chosen)`, called with `{stream, of, contours}`; `onVeil()`, called when the objects are to be drawn more or less
   *   faintly
   */
  constructor(map, parts) {
    Object.assign(this, { map }, parts);
    this.chosen = { stream: null, of: "count", contours: false, ...parts.chosen };
    this.legend = parts.createLegend({
      onOf: (of) => this.choose({ of }),
      onContours: (contours) => this.choose({ contours }),
      onStep: (at) => this.#go(at),
      onPlay: () => (this.playing ? this.#pause() : this.#play()),
      onClose: () => this.choose({ stream: null }),
    });
    this.question = this.answered = null; // the newest question, and the newest that has an answer
    this.at = -1; // which step of the slider is shown; -1 for all times
    this.steps = [];
    map.on(
      "moveend",
      debounced(() => this.#ask(), MOVE_MS),
    );
    map.on("zoomend", () => this.#show());
    pageEvents.on("theme units", () => this.#show());
    this.store.on("streams", () => this.#follow());
    this.#follow();
  }

  /** The stream whose density is shown; undefined if there is none. */
  get stream() {
    const stream = this.store.streams.get(this.chosen.stream);
    return stream?.sketch ? stream : undefined;
  }

  /** Show another density: change some of `{stream, of, contours}`. */
  choose(change) {
    const other = "stream" in change && change.stream !== this.chosen.stream;
    this.chosen = { ...this.chosen, ...change };
    if (other) {
      this.#restart();
      this.told = undefined;
    }
    this.onChoose(this.chosen);
    this.#follow();
    if (other) return;
    if ("of" in change) this.#ask();
    else this.#show();
  }

  /** Return how faintly the objects of a stream are drawn: 0 as always, 1 faded, 2 not at all. */
  veil(name) {
    if (name !== this.stream?.name || !this.answer) return 0;
    return Math.ceil(2 * this.#strength());
  }

  /** Return what a tooltip says of the cell at a point of the map's container: `{title, about, rows}`; undefined without a cell. */
  hit(containerPoint) {
    const i = this.layer.hit(containerPoint);
    if (i < 0) return undefined;
    const { cells, level } = this.answer;
    const [statistic, feature] = this.#of();
    const text = (value) => figure(statistic, feature, value);
    const exact = cells.low[i] === cells.high[i];
    const rows = [
      [this.legend.nameOf(this.chosen.of), text(cells.value[i])],
      ...(exact
        ? []
        : [
            [
              gettext("Between"),
              filled(gettext("%(low)s and %(high)s"), { low: text(cells.low[i]), high: text(cells.high[i]) }),
            ],
          ]),
      [gettext("Elements"), figure("count", "", cells.n[i])],
    ];
    return {
      title: this.stream?.title ?? this.chosen.stream,
      about: filled(gettext("a cell of %(level)s bits, %(when)s"), { level, when: this.#when() }),
      rows,
    };
  }

  #of() {
    const at = this.chosen.of.indexOf(":");
    return at < 0 ? [this.chosen.of, ""] : [this.chosen.of.slice(0, at), this.chosen.of.slice(at + 1)];
  }

  /** Follow the definitions of the streams: a sketch may come or go at any time. */
  #follow() {
    const { stream } = this;
    const told = JSON.stringify(stream?.sketch ?? null);
    this.legend.update({ stream, chosen: this.chosen });
    if (told === this.told) return;
    this.told = told;
    if (stream) {
      this.#askForTimes();
      this.#ask();
    } else this.#restart();
  }

  #restart() {
    this.#pause();
    for (const open of [this.question, this.answered, this.times]) open?.end();
    Object.assign(this, { question: null, answered: null, times: null, answer: null, at: -1, steps: [] });
    this.#show();
  }

  /** Ask once which times the sketch has, for the slider. */
  #askForTimes() {
    const plan = { stream: this.stream.name, kind: "sketch", ask: [{ question: "count" }], once: true };
    this.times?.end();
    this.times = this.asker.ask(
      { plan },
      {
        answers: ([{ basis }]) => {
          if (basis.first_us === null) return;
          const [first, last] = [basis.first_us / 1000, basis.last_us / 1000];
          this.step = stepFor(first, last, (this.stream?.sketch.time_bin_us ?? 3.6e9) / 1000);
          this.steps = stepsBetween(first, last, this.step);
          this.#showSlider();
        },
        error: () => {}, // the question for the cells says what is wrong
      },
    );
  }

  /** Ask for the cells in view; the question before ends once they are there, so that the map is never bare meanwhile. */
  #ask() {
    const { stream } = this;
    if (!stream) return;
    if (this.question !== this.answered) this.question.end();
    this.legend.say(gettext("Asking…"));
    const question = this.asker.ask(
      { plan: this.#plan(stream) },
      {
        answers: ([answer]) => {
          if (question !== this.question) return;
          if (question !== this.answered) this.answered?.end();
          this.answered = question;
          this.answer = answer;
          this.#show();
          this.onAnswered?.();
        },
        error: (message) => {
          if (question !== this.question) return;
          this.#pause();
          this.legend.say(message, true);
        },
      },
    );
    this.question = question;
  }

  #plan(stream) {
    const [statistic, feature] = this.#of();
    const zoom = this.map.getZoom();
    const view = this.view();
    const { lo, hi } = paddedBox(view, MARGIN);
    const whole = hi[0] - lo[0] >= 360 || hi[0] > 180; // across the antimeridian: ask for all longitudes
    const box = whole ? normalisedBox({ west: -180, east: 180, south: lo[1], north: hi[1] }) : { lo, hi };
    const sides = { west: box.lo[0], east: box.hi[0], south: box.lo[1], north: box.hi[1] };
    const level = Math.max(1, levelFor(zoom, sides, stream.sketch.cell_bits ?? 16));
    const ask = { question: "cells", level, statistic, ...(feature && { features: [feature] }) };
    const step = this.steps[this.at];
    const [from, to] = (step ?? []).map((ms) => new Date(ms).toISOString());
    return {
      stream: stream.name,
      kind: "sketch",
      ask: [ask],
      area: box,
      ...(step && { time: { ranges: [{ from, to }] } }),
    };
  }

  /** Of the past there are no objects on the map, so its cells are drawn at every zoom. */
  #strength() {
    if (this.at >= 0) return 1;
    return strengthAt(this.map.getZoom(), this.stream?.sketch.cell_bits ?? 16);
  }

  #show() {
    const { answer } = this;
    const [statistic, feature] = this.#of();
    const text = (value) => figure(statistic, feature, value);
    const scale = answer ? scaleOf(answer.cells.value, COUNTS.includes(statistic)) : null;
    const strength = answer ? this.#strength() : 0;
    const contours = this.chosen.contours && strength > 0;
    this.layer.show(answer ? { cells: answer.cells, scale, strength, contours, text } : null);
    if (answer) this.legend.show({ answer, scale, strength, text, dark: this.isDark() });
    this.onVeil();
  }

  #when() {
    return this.at < 0 ? gettext("all times") : stepText(this.steps[this.at], this.step);
  }

  #showSlider() {
    this.legend.slide({ steps: this.steps, step: this.step, at: this.at, playing: this.playing === true });
  }

  #go(at) {
    this.at = at;
    this.#showSlider();
    this.#ask();
  }

  /** Go through the steps; each waits for the answer of the one before. */
  #play() {
    this.playing = true;
    const next = () => {
      if (!this.playing) return;
      this.onAnswered = () => (this.timer = setTimeout(next, PLAY_MS));
      this.#go(this.at + 1 < this.steps.length ? this.at + 1 : 0);
    };
    next();
  }

  #pause() {
    this.playing = false;
    this.onAnswered = null;
    clearTimeout(this.timer);
    this.#showSlider();
  }
}
