// Figures with their bounds, and what they are based on, as text. Pure except for the chosen units.

import { inSentence } from "../../objects/field-words.js";
import { count, label, utcSpan, utcTime, value } from "../../format.js";
import { filled, gettext, LOCALE, ngettext, number } from "../../i18n.js";
import { units } from "../../units.js";
import { joinedNames, ofFeatures, statisticTitle } from "./statistics.js";

const NONE = "\u2013";
const DAY_MS = 86_400_000;
const HINT = 0.1234;
const COUNTS = ["count", "distinct", "frequency", "outliers", "n"];
const SHARES = ["density", "probability", "correlation", "contains"];

/** Return a statistic of a feature as text, in the unit that the feature's name says. */
export function figure(statistic, feature, amount) {
  if (amount === null || amount === undefined || !Number.isFinite(amount)) return NONE;
  if (COUNTS.includes(statistic)) return count(amount);
  if (SHARES.includes(statistic) || !feature) return significant(amount);
  if (isPlain(feature)) return significant(amount);
  return statistic === "std" || statistic === "contrast" ? difference(feature, amount) : value(feature, amount);
}

/** Return whether the name of a feature says no unit. */
function isPlain(feature) {
  return value(feature, HINT) === number(HINT, 3);
}

/** Return a difference of values of a feature as text: degrees Fahrenheit have another zero, which differences do not have. */
function difference(feature, amount) {
  if (feature.endsWith("_c") && !units().celsius) return `${number(1.8 * amount, 1)} \u00b0F`;
  return value(feature, amount);
}

/**
 * Return an answer as text: "7.1 m/s \u00b1 0.3 m/s", or with both bounds if they are not about equally far away; the value alone
 * if its error is below the last digit.
 */
export function bounded(statistic, feature, { value: middle, low, high }) {
  const text = figure(statistic, feature, middle);
  if (text === NONE || !Number.isFinite(low) || !Number.isFinite(high)) return text;
  const [below, above] = [middle - low, high - middle];
  const error = Math.max(below, above);
  if (error <= 1e-6 * Math.abs(middle) || error < lastDigit(text) / 2) return text;
  if (Math.min(below, above) < 0.6 * error) {
    const [from, to] = [low, high].map((end) => figure(statistic, feature, end));
    return from === to ? text : filled(gettext("%(value)s (%(from)s to %(to)s)"), { value: text, from, to });
  }
  const wide = figure(statistic === "mean" || statistic === "sum" ? "contrast" : statistic, feature, error);
  return /[1-9]/.test(wide) ? `${text} \u00b1 ${wide}` : text;
}

// What the language writes before decimals.
const POINT = (1.5).toLocaleString(LOCALE).charAt(1);

/** Return what the last digit of a number without a unit stands for; 0 for other texts. */
function lastDigit(text) {
  if (!/^[-\u2212]?\d[\d.,\s\u2019]*$/.test(text)) return 0;
  return 10 ** -(text.split(POINT)[1]?.length ?? 0);
}

/** Return whether a set has a value, as text: a Bloom filter may say yes wrongly, and never no. */
export function membership({ present, false_positive: wrong }) {
  return present
    ? filled(gettext("yes, wrong with a probability of %(probability)s"), { probability: significant(wrong) })
    : gettext("no");
}

/** Return how an answer is based: "420,768 elements in 1,204 leaves, 2013-03-01 to 2017-02-28, 95 % sure". */
export function basisText({ elements, leaves, cut, first_us: firstUs, last_us: lastUs }, confidence) {
  if (!elements) return gettext("Nothing was sketched there.");
  const all = filled(ngettext("%(count)s element", "%(count)s elements", elements), { count: count(elements) });
  const within = ngettext(
    "%(elements)s in %(count)s leaf of the sketch",
    "%(elements)s in %(count)s leaves of the sketch",
    leaves ?? 0,
  );
  const parts = [leaves === undefined ? all : filled(within, { elements: all, count: count(leaves) })]; // sets have no leaves
  if (cut > 0) parts.push(filled(gettext("%(count)s of them estimated at an edge"), { count: count(cut) }));
  if (Number.isFinite(firstUs) && Number.isFinite(lastUs)) parts.push(spanText(firstUs / 1000, lastUs / 1000));
  if (confidence) parts.push(filled(gettext("%(share)s sure"), { share: `${number(100 * confidence, 2)} %` }));
  return parts.join(", ");
}

/** Return a span of times: as days if it is longer than two days. */
function spanText(fromMs, toMs) {
  if (toMs - fromMs <= 2 * DAY_MS) return utcSpan(fromMs, toMs);
  const [from, to] = [fromMs, toMs].map((ms) => utcTime(ms).slice(0, 10));
  return filled(gettext("%(from)s to %(to)s"), { from, to });
}

/** Return what an answer is about: "Mean of temp", or "Elements" for a count of everything. */
export function titleOf(statistic, of) {
  const names = [of]
    .flat()
    .filter(Boolean)
    .map((name) => inSentence(label(name)));
  if (names.length === 0) return statistic === "count" ? gettext("Elements") : statisticTitle(statistic);
  return ofFeatures(statisticTitle(statistic), joinedNames(names));
}

/** Return a number with three digits that count, and with one behind the point below 10,000. */
export function significant(amount) {
  if (amount === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(amount)));
  const digits = Math.min(Math.max(2 - size, size < 4 ? 1 : 0), 6);
  return number(amount, digits);
}

/** Return the answer that stands for a document on a card, as `{text, title}`: its mean or median, or its first value, with the bound. */
export function headline(document) {
  const { question } = document;
  if (document.error) return { text: "", title: document.error };
  const { answers = [] } = document;
  if (question === "histogram")
    return {
      text: filled(gettext("%(count)s bins"), { count: count(answers.length) }),
      title: titleOf(question, document.features),
    };
  const first = answers.find(({ statistic, part }) => statistic === "mean" || part === 0.5) ?? answers[0];
  if (first && ["value", "low", "high"].every((key) => key in first)) {
    const statistic = first.statistic ?? (question === "contrast" ? "contrast" : question);
    const [feature] = [first.of].flat();
    const title = first.part === 0.5 ? titleOf("median", first.of) : titleOf(statistic, first.of);
    return { text: bounded(statistic === "deciles" ? "mean" : statistic, feature ?? "", first), title };
  }
  if (first && "present" in first)
    return { text: first.present ? gettext("yes") : gettext("no"), title: titleOf(question, first.of) };
  if (document.coefficients) return { text: significant(document.r2), title: gettext("Explained share") };
  if (document.cells)
    return {
      text: filled(gettext("%(count)s cells"), { count: count(document.cells.cell.length) }),
      title: gettext("Cells with elements"),
    };
  if (document.from_us)
    return {
      text: filled(gettext("%(count)s steps"), { count: count(document.from_us.length) }),
      title: gettext("Steps of time"),
    };
  return { text: "", title: question };
}
