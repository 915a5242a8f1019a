// Questions, statistics and features of sketches in words. Pure.

import { label } from "../../format.js";
import { filled, gettext } from "../../i18n.js";

const TITLES = {
  mean: gettext("Mean"),
  std: gettext("Standard deviation"),
  min: gettext("Least"),
  max: gettext("Largest"),
  sum: gettext("Sum"),
  count: gettext("Values"),
  select: gettext("Sketch"),
  median: gettext("Median"),
  deciles: gettext("Deciles"),
  correlation: gettext("Correlation"),
  distinct: gettext("Distinct"),
  outliers: gettext("Outliers"),
  contrast: gettext("Contrast"),
  density: gettext("Density"),
  probability: gettext("Probability"),
  histogram: gettext("Histogram"),
  contains: gettext("Contains"),
  frequency: gettext("Frequency"),
  regression: gettext("Regression"),
  forecast: gettext("Forecast"),
  cells: gettext("Cells"),
  series: gettext("Series"),
};
const WORDS = {
  mean: gettext("mean"),
  std: gettext("standard deviation"),
  min: gettext("least"),
  max: gettext("largest"),
  sum: gettext("sum"),
  count: gettext("count"),
  deciles: gettext("deciles"),
  correlation: gettext("correlation"),
  distinct: gettext("distinct"),
  outliers: gettext("outliers"),
  density: gettext("density"),
  probability: gettext("probability"),
  histogram: gettext("histogram"),
  contains: gettext("contains"),
  frequency: gettext("frequency"),
  forecast: gettext("forecast"),
};

/** What a question or a statistic is called at the beginning of a text. */
export const statisticTitle = (name) => TITLES[name] ?? label(name);

/** What a question or a statistic is called within a text. */
export const statisticText = (name) => WORDS[name] ?? name;

/** Say of which features a statistic is: "Mean of temp". */
export const ofFeatures = (what, features) => filled(gettext("%(what)s of %(features)s"), { what, features });

/** Join names: "temp and wind". */
export const joinedNames = (names) =>
  names.reduce((one, other) => filled(gettext("%(one)s and %(other)s"), { one, other }));
