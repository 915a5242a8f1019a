// The exact figures of stored rows, beside which a sketch's answer is shown. Pure.

import { timeOf } from "../../history/history.js";
import { gettext } from "../../i18n.js";

/** The most rows that one question to the history returns. */
export const MOST_ROWS = 10_000;

/** Return the question to the history about the place and the times of a plan. Hours of the day and polygons are left to `chosenRows`. */
export function questionFor(plan, nowMs) {
  const box = plan.polygon
    ? boxOf(plan.polygon)
    : plan.area && { lo: plan.area.lo.slice(0, 2), hi: plan.area.hi.slice(0, 2) };
  const span = spanOf(plan.time ?? {}, nowMs);
  return {
    type: "table.query",
    table: { stored: plan.stream },
    limit: MOST_ROWS,
    ...(box && box.lo.every(isNumber) && box.hi.every(isNumber) && { box }),
    ...(span && { span }),
  };
}

/** Return why a plan cannot be compared with stored rows; empty if it can. */
export function obstacle(plan) {
  if (plan.time?.ranges?.length > 1) return gettext("Only one range of times can be compared.");
  if (plan.time?.daily) return gettext("Hours of the day cannot be compared.");
  return plan.ranges?.length ? gettext("Ranges of values cannot be compared.") : "";
}

/** Return the rows that a plan selects; a time at the end of its range does not belong to it. */
export function chosenRows(rows, plan, nowMs) {
  const { to } = spanOf(plan.time ?? {}, nowMs) ?? {};
  const end = to && !plan.time.last_s ? Date.parse(to) : Infinity;
  const inside = plan.polygon ? ({ lo }) => contains(plan.polygon, lo[0], lo[1]) : () => true;
  return rows.filter((row) => timeOf(row) < end && inside(row));
}

/** Return the exact `{count, mean, min, max}` of a feature; `count` counts the rows that have it. */
export function figuresOf(rows, feature) {
  const values = rows.map(({ properties }) => properties?.[feature]).filter(isNumber);
  if (values.length === 0) return { count: 0, mean: NaN, min: NaN, max: NaN };
  return {
    count: values.length,
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    min: values.reduce((a, b) => Math.min(a, b)),
    max: values.reduce((a, b) => Math.max(a, b)),
  };
}

function spanOf({ ranges, last_s: lastS }, nowMs) {
  if (lastS) return { from: new Date(nowMs - 1000 * lastS).toISOString() };
  const [range] = ranges ?? [];
  return range && Object.fromEntries(Object.entries(range).map(([end, text]) => [end, new Date(text).toISOString()]));
}

function boxOf(polygon) {
  const along = (axis) => polygon.map((vertex) => vertex[axis]);
  return { lo: [Math.min(...along(0)), Math.min(...along(1))], hi: [Math.max(...along(0)), Math.max(...along(1))] };
}

/** Return whether a ring contains a place, by the number of its sides that a ray to the east crosses. */
function contains(ring, x, y) {
  return ring.reduce((inside, [x1, y1], i) => {
    const [x2, y2] = ring[(i + 1) % ring.length];
    const crosses = y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1);
    return crosses ? !inside : inside;
  }, false);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
