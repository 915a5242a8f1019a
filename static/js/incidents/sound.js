// A sound for incidents that open: the more urgent, the higher, and the more tones.

import { recall, remember } from "../remembered.js";
import { SEVERITIES } from "./store.js";

// Frequencies in Hz of tones that follow each other.
const TONES = { info: [523], warning: [659, 659], critical: [880, 988, 880, 988] };
const TONE_S = 0.16;
const GAP_S = 0.06;
const VOLUME = 0.12;
const QUIET_MS = 1500; // after a sound, so that a hundred incidents are one sound

export class Sound {
  now;
  AudioContext;

  /** @param {Record<string, any>} parts `now()`; `AudioContext` of the browser */
  constructor({ now, AudioContext = window.AudioContext }) {
    Object.assign(this, { now, AudioContext });
    this.muted = recall("muted") ?? false;
    this.lastMs = -Infinity;
    this.played = 0; // sounds that were played
    // A browser plays nothing before the user has done something on the page.
    for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, () => this.#awake(), { once: true });
  }

  /** Mute, or play again; remember it. */
  mute(muted) {
    this.muted = muted;
    remember("muted", muted);
    if (!muted) this.play("info");
  }

  /** Play the sound of the most urgent of some severities, unless one was played just now. */
  play(...severities) {
    const severity = [...SEVERITIES].reverse().find((one) => severities.includes(one));
    if (this.muted || !severity || !this.context || this.now() - this.lastMs < QUIET_MS) return;
    this.lastMs = this.now();
    this.played++;
    TONES[severity].forEach((frequency, i) => this.#tone(frequency, this.context.currentTime + i * (TONE_S + GAP_S)));
  }

  #awake() {
    if (!this.AudioContext || this.context) return;
    this.context = new this.AudioContext();
  }

  /** Play a tone that swells and fades, so that it does not click. */
  #tone(frequency, atS) {
    const [oscillator, gain] = [this.context.createOscillator(), this.context.createGain()];
    oscillator.frequency.value = frequency;
    gain.gain.setValueAtTime(0, atS);
    gain.gain.linearRampToValueAtTime(VOLUME, atS + 0.02);
    gain.gain.linearRampToValueAtTime(0, atS + TONE_S);
    oscillator.connect(gain).connect(this.context.destination);
    oscillator.start(atS);
    oscillator.stop(atS + TONE_S);
  }
}
