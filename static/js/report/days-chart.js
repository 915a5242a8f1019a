// The chart of a report: a bar for each day.

import { filled, gettext } from "../i18n.js";
import { extentOf, linear, roundSteps } from "../kinds/sketch/scales.js";
import { AXIS, baseAxis, createChart, LEFT, s, valueAxis, WIDTH } from "../kinds/sketch/svg.js";
import { measured, MEASURES } from "./questions.js";

const BARS = 96; // height of the chart without its axis
const TOP = 6;
const BAR_SHARE = 0.8; // of the width of a day
const MOST_BAR_PX = 44;
const MOST_LABELS = 5;
const STEPS = { _s: 3600, _m: 1 }; // values are labelled at round numbers of hours, metres, or pieces

/** Make the chart of the sums of days, such as `[{day, objects, visits, dwell_s, ...}]`; `measure` is one of `MEASURES`. */
export function daysChart(days, measure) {
  const values = days.map((day) => day[measure]);
  const width = (WIDTH - LEFT) / days.length;
  const places = days.map((_, i) => LEFT + (i + 0.5) * width);
  const [, top] = extentOf(values, [0]);
  const y = linear([0, top || 1], [BARS, TOP]);
  const bar = Math.min(Math.max(BAR_SHARE * width, 0.6), MOST_BAR_PX);
  const unit = STEPS[measure.slice(-2)] ?? 1;
  const steps = top > 0 ? roundSteps(0, top / unit, 3).map((value) => value * unit) : [0];
  const whole = steps.filter((value) => measure.includes("_") || Number.isInteger(value));
  const each = Math.ceil(days.length / MOST_LABELS);
  const marks = [
    ...valueAxis(whole.map((value) => [y(value), measured(measure, value).replace(" 0 min", "")])),
    ...values.map((value, i) =>
      s("rect", { class: "chart-bar", x: places[i] - bar / 2, width: bar, y: y(value), height: BARS - y(value) }),
    ),
    ...baseAxis(
      places.flatMap((x, i) => (i % each === 0 ? [[x, days[i].day.slice(5)]] : [])),
      BARS,
    ),
  ];
  const words = (i) => `${days[i].day}: ${measured(measure, values[i])}`;
  const first = values.indexOf(top);
  const title = filled(gettext("%(measure)s by day; the arrow keys go through the days"), {
    measure: MEASURES[measure],
  });
  return createChart({ title, height: BARS + AXIS, marks, places, words, first });
}
