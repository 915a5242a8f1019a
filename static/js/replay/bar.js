// The bar of a replay: play, speed, the slider with its ticks, the span, and the way back to live.

import { $, h, icon, setText } from "../dom.js";
import { count, localClock, localTime, SIGNS, title } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { SPEEDS } from "./clock.js";
import { eventAt, placeOf, storedParts, ticksOf } from "./ticks.js";

const HIT_PX = 5;
const MINUTE_MS = 60_000;
const TEXT_FIELDS = "input:not([type=checkbox]):not([type=radio]):not([type=range]), select, textarea";

export class ReplayBar {
  clock;
  onSeek;
  onPlay;
  onSpeed;
  onSpan;
  onOwnSpan;
  onLive;
  onAnswers;
  palette;
  queryOf;

  /**
   * @param {Record<string, any>} parts `clock`; `onSeek(ms)`, `onPlay(on)`, `onSpeed(speed)`, `onSpan(name)`, `onOwnSpan(fromMs, toMs)`, `onLive()`,
   *   `onAnswers(on)`; `palette()`; `queryOf(number)`, a query's status
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.events = [];
    this.stored = [];
    this.element = $("replay");
    this.slider = $("replay-slider");
    this.canvas = $("replay-ticks");
    $("replay-speed").replaceChildren(...SPEEDS.map((speed) => new Option(`${speed}×`, String(speed))));
    $("replay-play").addEventListener("click", () => this.onPlay(!this.clock.playing));
    $("replay-speed").addEventListener("change", ({ target }) => this.onSpeed(Number(target.value)));
    $("replay-span").addEventListener("change", ({ target }) => this.#chooseSpan(target.value));
    $("replay-live").addEventListener("click", () => this.onLive());
    $("replay-answers").addEventListener("change", ({ target }) => this.onAnswers(target.checked));
    $("replay-own").addEventListener("submit", (event) => this.#takeOwn(event));
    this.slider.addEventListener("input", () => this.onSeek(Number(this.slider.value)));
    this.slider.addEventListener("keydown", (event) => this.#key(event) && event.preventDefault());
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerleave", () => this.#point(null));
    this.canvas.addEventListener("click", (event) => this.#pick(event));
    window.addEventListener("keydown", (event) => this.#pressed(event));
    new ResizeObserver(() => this.drawTicks()).observe(this.canvas);
  }

  get open() {
    return !this.element.hidden;
  }

  show(open) {
    this.element.hidden = !open;
    $("replay-badge").hidden = !open;
    $("open-replay").setAttribute("aria-pressed", String(open));
    if (open) document.body.dataset.replay = "open";
    else delete document.body.dataset.replay;
  }

  /** Show where the clock is, and for what it waits, as `Player.state` returns it. */
  render({ objects, answers }) {
    const { clock } = this;
    const waiting = objects || answers !== null;
    const { atMs, playing } = clock;
    setText($("replay-time"), localTime(atMs));
    setText($("replay-badge-time"), localClock(atMs));
    const state = waiting
      ? gettext("Loading…")
      : playing
        ? `${clock.speed}×`
        : atMs >= clock.toMs
          ? gettext("Ended")
          : gettext("Paused");
    setText($("replay-badge-state"), state);
    this.#renderComputing(objects, answers);
    this.element.dataset.waiting = String(waiting);
    const play = $("replay-play");
    if (play.dataset.playing !== String(playing)) {
      play.dataset.playing = String(playing);
      play.setAttribute("aria-label", playing ? gettext("Pause") : gettext("Play"));
      play.replaceChildren(icon(playing ? "pause" : "play"));
    }
    $("replay-speed").value = String(clock.speed);
    if (Number(this.slider.min) !== clock.fromMs || Number(this.slider.max) !== clock.toMs) {
      Object.assign(this.slider, {
        min: String(Math.floor(clock.fromMs)),
        max: String(Math.ceil(clock.toMs)),
        step: "1",
      });
      this.drawTicks();
    }
    this.slider.value = String(atMs);
    this.slider.setAttribute("aria-valuetext", localTime(atMs));
    this.slider.style.setProperty(
      "--done",
      `${(100 * (atMs - clock.fromMs)) / Math.max(1, clock.toMs - clock.fromMs)}%`,
    );
  }

  /** Show what is being read or computed, and how far it is. */
  #renderComputing(objects, answers) {
    const share = objects ? NaN : (answers?.share ?? NaN);
    const progress = $("replay-progress");
    $("replay-computing").hidden = !objects && !answers;
    setText($("replay-computing-text"), objects ? gettext("Reading objects…") : answers ? computingText(answers) : "");
    if (Number.isFinite(share)) progress.value = share;
    else progress.removeAttribute("value");
  }

  /** Show a note below the slider; "" for none. */
  note(text) {
    setText($("replay-note"), text);
    $("replay-note").title = text;
  }

  /** Draw the events of the span, and for which parts of it elements are stored. */
  drawTicks() {
    const { canvas, clock } = this;
    const width = canvas.clientWidth;
    if (!this.open || width === 0) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(canvas.clientHeight * ratio) });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const { height } = { height: canvas.clientHeight };
    const { queries } = this.palette();
    context.fillStyle = getComputedStyle(this.element).getPropertyValue("--accent-soft");
    for (const [from, to] of storedParts(this.stored, clock))
      context.fillRect(from * width, height - 4, Math.max(1, (to - from) * width), 4);
    for (const { x, colour, entered } of ticksOf(this.events, clock, width)) {
      context.fillStyle = queries[colour];
      context.fillRect(x - 1, entered ? 0 : height / 2 - 2, 2, height / 2 - 2);
    }
  }

  #eventAt({ clientX }) {
    const box = this.canvas.getBoundingClientRect();
    return eventAt(this.events, clientX - box.left, this.clock, box.width, HIT_PX);
  }

  #point(event) {
    const found = event && this.#eventAt(event);
    const tip = $("replay-tip");
    tip.hidden = !found;
    this.canvas.style.cursor = found ? "pointer" : "";
    if (!found) return;
    const name = title(found.key, {});
    const happened = found.partner
      ? filled(gettext("%(object)s with %(partner)s"), { object: name, partner: found.partner })
      : name;
    tip.replaceChildren(
      h("strong", {}, `${SIGNS[found.sign]} ${happened}`),
      ` ${this.queryOf(found.query)?.name ?? ""}, ${localClock(found.timeMs)}`,
    );
    const [left, half] = [placeOf(found.timeMs, this.clock, this.canvas.clientWidth), tip.offsetWidth / 2];
    tip.style.left = `${Math.max(half, Math.min(left, this.canvas.clientWidth - half))}px`;
  }

  #pick(event) {
    const found = this.#eventAt(event);
    const box = this.canvas.getBoundingClientRect();
    const { fromMs, toMs } = this.clock;
    this.onSeek(found ? found.timeMs : fromMs + ((event.clientX - box.left) / box.width) * (toMs - fromMs));
  }

  #chooseSpan(name) {
    $("replay-own").hidden = name !== "own";
    if (name !== "own") return this.onSpan(name);
    const form = $("replay-own");
    form.elements.from.value = localTime(this.clock.fromMs).replace(" ", "T");
    form.elements.to.value = localTime(this.clock.toMs).replace(" ", "T");
    form.elements.from.focus();
  }

  #takeOwn(event) {
    event.preventDefault();
    const { from, to } = $("replay-own").elements;
    const [fromMs, toMs] = [from, to].map(({ value }) => new Date(value).getTime());
    if (!(fromMs < toMs)) return setText($("replay-own-error"), gettext("The end must be later than the beginning."));
    setText($("replay-own-error"), "");
    $("replay-own").hidden = true;
    this.onOwnSpan(fromMs, toMs);
  }

  #pressed(event) {
    if (!this.open || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const used =
      target.matches?.(TEXT_FIELDS) ||
      target.closest?.("#table, [role=tablist], [role=listbox], .leaflet-container, .replay-bar input");
    if (used && !(event.key === " " && target.closest?.(".leaflet-container"))) return;
    if (event.key === " " && target.matches?.("button, summary, a, input")) return; // it presses them
    if (this.#key(event)) event.preventDefault();
  }

  /** Do what a key means, and return whether it means something: space plays, arrows go a step, with shift a longer one. */
  #key({ key, shiftKey }) {
    const step =
      (shiftKey ? 6 : 1) * Math.max(10_000, Math.round((this.clock.toMs - this.clock.fromMs) / 360 / 10_000) * 10_000);
    const to = { ArrowLeft: -step, ArrowRight: step, PageDown: -10 * MINUTE_MS, PageUp: 10 * MINUTE_MS }[key];
    if (key === " ") this.onPlay(!this.clock.playing);
    else if (key === "ArrowUp" || key === "ArrowDown") this.onSpeed(null, key === "ArrowUp" ? 1 : -1);
    else if (key === "Home") this.onSeek(this.clock.fromMs);
    else if (key === "End") this.onSeek(this.clock.toMs);
    else if (to) this.onSeek(this.clock.atMs + to);
    else return false;
    return true;
  }
}

/** Say of how many queries the answers are shown, and how far the rest is computed. */
function computingText({ queries, missing, untilMs, share }) {
  const values = {
    known: count(queries - missing),
    queries: count(queries),
    percent: `${count(Math.floor(100 * share))} %`,
    time: localClock(untilMs),
  };
  if (!Number.isFinite(untilMs))
    return filled(gettext("Answers shown: %(known)s of %(queries)s. The others are being computed…"), values);
  if (!Number.isFinite(share)) return filled(gettext("Answers are computed up to %(time)s…"), values);
  return filled(
    gettext(
      "Answers shown: %(known)s of %(queries)s. Events and the others are computed up to %(time)s (%(percent)s)…",
    ),
    values,
  );
}
