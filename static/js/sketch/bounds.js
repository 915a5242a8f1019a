// Figures with their bounds, and what they are based on, as text. Pure except for the chosen units.

import { count, label, number, utcSpan, utcTime, value } from "../format.js";
import { units } from "../units.js";

const NONE = "\u2013";
const DAY_MS = 86_400_000;
const HINT = 0.1234;
const COUNTS = ["count", "distinct", "frequency", "outliers", "n"];
const SHARES = ["density", "probability", "correlation", "contains"];

/** Return a statistic of a feature as text, in the unit that the feature's name says. */
export function figure(statistic, feature, figure) {
  if (figure === null || figure === undefined || !Number.isFinite(figure)) return NONE;
  if (COUNTS.includes(statistic)) return count(figure);
  if (SHARES.includes(statistic) || !feature) return significant(figure);
  if (isPlain(feature)) return significant(figure);
  return statistic === "std" || statistic === "contrast" ? difference(feature, figure) : value(feature, figure);
}

/** Return whether the name of a feature says no unit. */
function isPlain(feature) {
  return value(feature, HINT) === number(HINT, 3);
}

/** Return a difference of values of a feature as text: degrees Fahrenheit have another zero, which differences do not have. */
export function difference(feature, amount) {
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
    return from === to ? text : `${text} (${from} to ${to})`;
  }
  const wide = figure(statistic === "mean" || statistic === "sum" ? "contrast" : statistic, feature, error);
  return /[1-9]/.test(wide) ? `${text} \u00b1 ${wide}` : text;
}

/** Return what the last digit of a number without a unit stands for; 0 for other texts. */
function lastDigit(text) {
  const decimals = /^-?[\d,]+(?:\.(\d+))?$/.exec(text);
  return decimals ? 10 ** -(decimals[1]?.length ?? 0) : 0;
}

/** Return whether a set has a value, as text: a Bloom filter may say yes wrongly, and never no. */
export function membership({ present, false_positive: wrong }) {
  return present ? `yes, wrong with a probability of ${significant(wrong)}` : "no";
}

/** Return how an answer is based: "420,768 elements in 1,204 leaves, 2013-03-01 to 2017-02-28, 95 % sure". */
export function basisText({ elements, leaves, cut, first_us: firstUs, last_us: lastUs }, confidence) {
  if (!elements) return "Nothing was sketched there.";
  const parts = [`${count(elements)} elements`];
  if (leaves !== undefined) parts[0] += ` in ${count(leaves)} ${leaves === 1 ? "leaf" : "leaves"} of the sketch`; // sets have none
  if (cut > 0) parts.push(`${count(cut)} of them estimated at an edge`);
  if (Number.isFinite(firstUs) && Number.isFinite(lastUs)) parts.push(spanText(firstUs / 1000, lastUs / 1000));
  if (confidence) parts.push(`${number(100 * confidence, 2)} % sure`);
  return parts.join(", ");
}

/** Return a span of times: as days if it is longer than two days. */
export function spanText(fromMs, toMs) {
  if (toMs - fromMs <= 2 * DAY_MS) return utcSpan(fromMs, toMs);
  return [fromMs, toMs].map((ms) => utcTime(ms).slice(0, 10)).join(" to ");
}

const WORDS = { mean: "Mean", std: "Standard deviation", min: "Least", max: "Largest", sum: "Sum", count: "Values", select: "Sketch" };

/** Return what an answer is about: "Mean of temp", or "Elements" for a count of everything. */
export function titleOf(statistic, of) {
  const names = [of].flat().filter(Boolean).map((name) => label(name).toLowerCase());
  if (names.length === 0) return statistic === "count" ? "Elements" : (WORDS[statistic] ?? label(statistic));
  return `${WORDS[statistic] ?? label(statistic)} of ${names.join(" and ")}`;
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
  if (question === "histogram") return { text: `${count(answers.length)} bins`, title: titleOf(question, document.features) };
  const first = answers.find(({ statistic, part }) => statistic === "mean" || part === 0.5) ?? answers[0];
  if (first && ["value", "low", "high"].every((key) => key in first)) {
    const statistic = first.statistic ?? (question === "contrast" ? "contrast" : question);
    const [feature] = [first.of].flat();
    const title = first.part === 0.5 ? titleOf("median", first.of) : titleOf(statistic, first.of);
    return { text: bounded(statistic === "deciles" ? "mean" : statistic, feature ?? "", first), title };
  }
  if (first && "present" in first) return { text: first.present ? "yes" : "no", title: titleOf(question, first.of) };
  if (document.coefficients) return { text: significant(document.r2), title: "Explained share" };
  if (document.cells) return { text: `${count(document.cells.cell.length)} cells`, title: "Cells with elements" };
  if (document.from_us) return { text: `${count(document.from_us.length)} steps`, title: "Steps of time" };
  return { text: "", title: question };
}
