// The clock of a replay: the time that the map shows, how fast it goes, and the span in which it goes. Pure.

export const SPEEDS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600];

export class ReplayClock {
  fromMs;
  toMs;

  #setMs = NaN; // when `atMs` was last set, by the computer's clock

  /** @param {Record<string, any>} span `fromMs`, `toMs`, the ends of the slider; `atMs`, where the clock begins */
  constructor({ fromMs, toMs, atMs }) {
    Object.assign(this, { fromMs, toMs, speed: 1, playing: false });
    this.seek(atMs);
  }

  /** Set the clock to a time of the span, the nearest one if it lies outside. */
  seek(atMs) {
    this.atMs = Math.min(this.toMs, Math.max(this.fromMs, atMs));
    this.#setMs = NaN;
  }

  /** Change the span; the clock stays if it is still in it. */
  within(fromMs, toMs) {
    Object.assign(this, { fromMs, toMs });
    this.seek(this.atMs);
  }

  /** Play on, from the beginning if the end was reached. */
  play() {
    if (this.atMs >= this.toMs) this.seek(this.fromMs);
    this.playing = true;
    this.#setMs = NaN;
  }

  pause() {
    this.playing = false;
  }

  /** Let the clock go on to `nowMs` of the computer, but not beyond `knownMs`, up to where the past is known. Return its time. */
  advance(nowMs, knownMs = Infinity) {
    if (!this.playing) return this.atMs;
    const passedMs = Number.isFinite(this.#setMs) ? Math.max(0, nowMs - this.#setMs) : 0;
    const end = Math.min(this.toMs, Math.max(this.atMs, knownMs));
    this.atMs = Math.min(end, this.atMs + passedMs * this.speed);
    this.#setMs = nowMs;
    if (this.atMs >= this.toMs) this.pause();
    return this.atMs;
  }

  /** Choose the next speed up (`by` 1) or down (`by` -1). */
  shift(by) {
    const at = SPEEDS.indexOf(this.speed);
    this.speed = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, at + by))];
  }
}
