// The charts of answers: of a series of times with its forecast, and of a histogram with its deciles.

import { inSentence } from "../../objects/field-words.js";
import { count, label } from "../../format.js";
import { filled, gettext, number } from "../../i18n.js";
import { bounded, figure } from "./bounds.js";
import { extentOf, linear, roomy, roundSteps, timeLabels } from "./scales.js";
import { AXIS, bandOf, baseAxis, createChart, drawnOf, LEFT, pathOf, s, valueAxis, WIDTH } from "./svg.js";

const LINES = 124; // height of a chart of lines
const BARS = 46; // height of the bars below it
const GAP = 10;
const BAR_SHARE = 0.8; // of the width of a step

/**
 * Make the chart of a series: least to largest as a band, the mean as a line with its bounds, counts or sums as bars.
 *
 * @param {Record<string, any>} answer to the question series
 * @param {string} feature
 * @param {string} bars "count" or "sum"
 * @param {(...values: any[]) => any} stepText returns what a step is called, given its first moment in milliseconds
 */
export function seriesChart(answer, feature, bars, stepText) {
  const columns = answer.series[feature];
  const [from, to] = [answer.from_us, answer.to_us].map((times) => times.map((us) => us / 1000));
  const { mean, min, max, n } = columns;
  const x = linear([from[0], to.at(-1)], [LEFT, WIDTH]);
  const middles = from.map((ms, i) => x((ms + to[i]) / 2));
  const y = linear(roomy(extentOf(min.value, max.value) ?? [0, 1]), [LINES, 4]);
  const at = (value) => (value === null ? NaN : y(value));
  const tall = bars === "sum" ? columns.sum.value : n;
  const base = LINES + GAP + BARS;
  const [low, high] = extentOf(tall, [0]);
  const up = linear([low, high > low ? high : low + 1], [base, LINES + GAP]);
  const mark = [
    ...valueAxis(ticksOf(y, feature)),
    s("path", {
      class: "chart-band",
      d: bandOf(middles.map((place, i) => [place, at(min.value[i]), at(max.value[i])])),
    }),
    s("path", {
      class: "chart-error",
      d: bandOf(middles.map((place, i) => [place, at(mean.low[i]), at(mean.high[i])])),
    }),
    s("path", { class: "chart-line", d: pathOf(middles.map((place, i) => [place, at(mean.value[i])])) }),
    ...barsOf(tall, from, to, x, up),
    ...valueAxis([[up(high), figure(bars, feature, high)]]),
    ...baseAxis(
      timeLabels(from[0], to.at(-1)).map(([ms, text]) => [x(ms), text]),
      base,
    ),
  ];
  const words = (i) => seriesWords(columns, feature, i, stepText(from[i]));
  const title = filled(gettext("Climate of %(feature)s: a point for each step; the arrow keys go through them"), {
    feature: inSentence(label(feature)),
  });
  return createChart({ title, height: base + AXIS, marks: mark, places: middles, words });
}

function seriesWords({ mean, min, max, sum, n }, feature, i, when) {
  if (!n[i]) return filled(gettext("%(when)s: nothing"), { when });
  const of = (name, column) =>
    bounded(name, feature, { value: column.value[i], low: column.low[i], high: column.high[i] });
  const words = gettext("%(when)s: mean %(mean)s, least %(min)s, largest %(max)s, sum %(sum)s, %(count)s values");
  return filled(words, {
    when,
    mean: of("mean", mean),
    min: of("min", min),
    max: of("max", max),
    sum: of("sum", sum),
    count: figure("count", "", n[i]),
  });
}

/** Make the chart of a forecast: the means of the past, then what is expected, with its band. */
export function forecastChart(answer, feature, stepText) {
  const { past } = answer;
  const [pastMs, nextMs] = [past.from_us, answer.from_us].map((times) => times.map((us) => us / 1000));
  const times = [...pastMs, ...nextMs];
  const [before, after] = [drawnOf(pastMs.length), drawnOf(nextMs.length)];
  const x = linear([times[0], times.at(-1)], [LEFT, WIDTH - 4]);
  const y = linear(roomy(extentOf(past.value, answer.low, answer.high) ?? [0, 1]), [LINES, 4]);
  const at = (value) => (value === null ? NaN : y(value));
  const mark = [
    ...valueAxis(ticksOf(y, feature)),
    s("path", {
      class: "chart-band",
      d: bandOf(after.map((i) => [x(nextMs[i]), at(answer.low[i]), at(answer.high[i])])),
    }),
    s("path", { class: "chart-line", d: pathOf(before.map((i) => [x(pastMs[i]), at(past.value[i])])) }),
    s("path", { class: "chart-line expected", d: pathOf(after.map((i) => [x(nextMs[i]), at(answer.value[i])])) }),
    ...baseAxis(
      timeLabels(times[0], times.at(-1)).map(([ms, text]) => [x(ms), text]),
      LINES,
    ),
  ];
  const told = (columns, i) =>
    bounded("mean", feature, { value: columns.value[i], low: columns.low?.[i], high: columns.high?.[i] });
  const words = (i) =>
    i < pastMs.length
      ? filled(gettext("%(when)s: mean %(value)s"), { when: stepText(times[i]), value: told(past, i) })
      : filled(gettext("%(when)s: expected %(value)s"), {
          when: stepText(times[i]),
          value: told(answer, i - pastMs.length),
        });
  const title = filled(gettext("Trend and forecast of %(feature)s; the arrow keys go through its points"), {
    feature: inSentence(label(feature)),
  });
  return createChart({ title, height: LINES + AXIS, marks: mark, places: times.map(x), words });
}

/** Make the chart of a histogram, with a mark at each decile; `deciles` may be missing. */
export function histogramChart(answer, feature, deciles) {
  const bins = answer.answers;
  const x = linear([bins[0].lo, bins.at(-1).hi === bins[0].lo ? bins[0].lo + 1 : bins.at(-1).hi], [LEFT, WIDTH]);
  const top = extentOf(
    bins.map(({ high }) => high),
    [0],
  )[1];
  const y = linear([0, top || 1], [LINES, 12]);
  const percent = (share) => `${number(100 * share, 1)} %`;
  const marks = [
    ...valueAxis(roundSteps(0, top, 3).map((share) => [y(share), percent(share)])),
    ...bins.map(({ lo, hi, value }) =>
      s("rect", {
        class: "chart-bar",
        x: x(lo) + 0.5,
        width: Math.max(x(hi) - x(lo) - 1, 1),
        y: y(value),
        height: Math.max(LINES - y(value), 0),
      }),
    ),
    ...bins
      .filter(({ low, high }) => high > low)
      .map(({ lo, hi, low, high }) =>
        s("line", { class: "chart-whisker", x1: x((lo + hi) / 2), x2: x((lo + hi) / 2), y1: y(low), y2: y(high) }),
      ),
    ...(deciles?.answers ?? [])
      .filter(({ value }) => value !== null)
      .map(({ value, part }) =>
        s("line", {
          class: `chart-decile${part === 0.5 ? " median" : ""}`,
          x1: x(value),
          x2: x(value),
          y1: 2,
          y2: LINES,
        }),
      ),
    ...baseAxis(
      roundSteps(bins[0].lo, bins.at(-1).hi, 4).map((value) => [x(value), figure("mean", feature, value)]),
      LINES,
    ),
  ];
  const text = (value) => figure("mean", feature, value);
  const words = (i) => {
    const { lo, hi, value, low, high } = bins[i];
    const range = gettext(
      "%(from)s to %(to)s: %(share)s of the values (%(low)s to %(high)s), about %(count)s elements",
    );
    const exact = gettext("%(from)s to %(to)s: %(share)s of the values, about %(count)s elements");
    const about = {
      from: text(lo),
      to: text(hi),
      share: percent(value),
      low: percent(low),
      high: percent(high),
      count: count(value * answer.basis.elements),
    };
    return filled(high > low ? range : exact, about);
  };
  const title = filled(gettext("Histogram of %(feature)s; the arrow keys go through its bins"), {
    feature: inSentence(label(feature)),
  });
  return createChart({
    title,
    height: LINES + AXIS,
    marks,
    places: bins.map(({ lo, hi }) => x((lo + hi) / 2)),
    words,
    first: bins.length >> 1,
  });
}

function ticksOf(y, feature) {
  const [low, high] = [LINES, 4].map((place) => inverse(y, place));
  return roundSteps(low, high, 4).map((value) => [y(value), figure("mean", feature, value)]);
}

/** Return the value at a place of a straight scale. */
function inverse(scale, place) {
  const [zero, one] = [scale(0), scale(1)];
  return (place - zero) / (one - zero);
}

function barsOf(values, from, to, x, up) {
  return values.flatMap((value, i) => {
    if (!value) return [];
    const width = Math.max((x(to[i]) - x(from[i])) * BAR_SHARE, 0.6);
    const [top, bottom] = [Math.min(up(value), up(0)), Math.max(up(value), up(0))];
    return [
      s("rect", { class: "chart-bar", x: x((from[i] + to[i]) / 2) - width / 2, width, y: top, height: bottom - top }),
    ];
  });
}
