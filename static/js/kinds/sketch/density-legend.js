// The legend of a density: what it shows, its colours, what it is based on, and the slider over its times.

import { $, h, offer, setText } from "../../dom.js";
import { inSentence } from "../../objects/field-words.js";
import { label } from "../../format.js";
import { gettext } from "../../i18n.js";
import { basisText } from "./bounds.js";
import { gradient } from "./colours.js";
import { ofFeatures } from "./statistics.js";
import { stepText } from "./steps.js";

const STATISTICS = [
  ["mean", gettext("Mean")],
  ["min", gettext("Least")],
  ["max", gettext("Largest")],
  ["std", gettext("Spread")],
];

/** @param {Record<string, any>} on `onOf(of)`, with "count" or "mean:temp"; `onContours(on)`; `onStep(at)`, -1 for all times; `onPlay()`; `onClose()` */
export function createDensityLegend(on) {
  const [box, of, contours, slider, play] = [
    "density",
    "density-of",
    "density-contours",
    "density-time",
    "density-play",
  ].map($);
  of.addEventListener("change", () => on.onOf(of.value));
  contours.addEventListener("change", () => on.onContours(contours.checked));
  slider.addEventListener("input", () => on.onStep(Number(slider.value) - 1));
  play.addEventListener("click", on.onPlay);
  $("density-close").addEventListener("click", on.onClose);
  const nameOf = (value) => [...of.options].find((option) => option.value === value)?.textContent ?? value;
  const when = (at, steps, step) => (at < 0 ? gettext("All times") : stepText(steps[at], step));
  return {
    nameOf,
    /** Offer what the sketch of a stream has; without a stream there is no legend. */
    update({ stream, chosen }) {
      box.hidden = !stream;
      if (!stream) return;
      setText($("density-title"), stream.title ?? stream.name);
      const features = stream.sketch.features.map((name) => [
        label(name),
        STATISTICS.map(([key, words]) => [`${key}:${name}`, ofFeatures(words, inSentence(label(name)))]),
      ]);
      offer(of, [["", [["count", gettext("Count of elements")]]], ...features], chosen.of);
      contours.checked = chosen.contours;
    },
    /** Show the colours of an answer. */
    show({ answer, scale, strength, text, dark }) {
      $("density-bar").style.background = gradient(dark);
      $("density-scale").hidden = !scale;
      const marks = (scale?.ticks ?? []).map(([share, value]) => {
        const mark = h("span", {}, text(value));
        mark.style.left = `${100 * share}%`;
        mark.dataset.end = share < 0.08 ? "left" : share > 0.92 ? "right" : "";
        return mark;
      });
      $("density-ticks").replaceChildren(...marks);
      const faint =
        strength > 0
          ? gettext("The objects are faint at this zoom; zoom in for the objects alone.")
          : gettext("At this zoom the map shows the objects.");
      this.say(sentences(basisText(answer.basis, answer.confidence), strength < 1 ? faint : ""));
    },
    say(words, wrong = false) {
      setText($("density-basis"), words);
      $("density-basis").className = wrong ? "field-error" : "hint";
    },
    /** Show the slider at one of its steps. */
    slide({ steps, step, at, playing }) {
      $("density-times").hidden = steps.length < 2;
      slider.max = steps.length;
      slider.value = at + 1;
      const words = steps.length > 0 ? when(at, steps, step) : "";
      slider.setAttribute("aria-valuetext", words);
      setText($("density-when"), words);
      play.setAttribute("aria-label", playing ? gettext("Pause") : gettext("Play through the times"));
      play.title = play.getAttribute("aria-label");
      play.querySelector("use").setAttribute("href", playing ? "#icon-pause" : "#icon-play");
    },
  };
}

/** Return a text that ends with a full stop, and a sentence, if there is one. */
function sentences(text, more) {
  return more ? `${text.replace(/\.$/, "")}. ${more}` : text;
}
