// Builds a query plan from the form's fields. Pure except for the chosen units.

import { count, length } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { kindOf } from "./registry.js";
import { noiseless, tracked } from "./track/noise.js";
import { boxAround, formOf } from "../shapes.js";
import { timed, timeless } from "./time-joins.js";
import { units } from "../units.js";

/**
 * Return the box of a plan on the map: what it compares with, the area of a join or a sketch, or the box about an area that has
 * a shape; null for the whole map, and with a focus.
 */
export function boxOf(plan) {
  if (plan?.polygon) return boxAroundRing(plan.polygon);
  if (plan?.around) return null;
  const shape = shapedArea(plan);
  return plan?.compare ?? (shape ? boxAround(shape) : (areaIn(plan) ?? null));
}

/** Return the area of a plan if it is a polygon, a circle or a corridor; otherwise null. */
export function shapedArea(plan) {
  const area = areaIn(plan);
  return formOf(area) ? area : null;
}

/** Return the area that a plan has, or that objects will enter. */
export function areaIn(plan) {
  return plan?.target ?? plan?.area;
}

function boxAroundRing(ring) {
  const ends = (pick) => [0, 1].map((axis) => pick(...ring.map((vertex) => vertex[axis])));
  return { lo: ends(Math.min), hi: ends(Math.max) };
}

const STANDARD_K = 10;

/** The queries that one click makes around a focus `{stream, key}` or `{at}`: their name, and their plan. */
export const ABOUT = [
  {
    action: "watch",
    icon: "around",
    name: gettext("%(distance)s around %(name)s"),
    plan: (stream, focus) => ({ stream, kind: "range", around: { ...focus, radius: units().radiusM } }),
  },
  {
    action: "nearest",
    icon: "nearest",
    name: gettext("%(count)s nearest to %(name)s"),
    plan: (stream, focus) => ({ stream, kind: "knn", k: STANDARD_K, around: focus }),
  },
  {
    action: "count",
    icon: "count",
    name: gettext("Count %(distance)s around %(name)s"),
    plan: (stream, focus) => ({
      stream,
      kind: "range",
      around: { ...focus, radius: units().radiusM },
      aggregate: { function: "count" },
    }),
  },
];

/**
 * Return the name of such a query.
 *
 * @param {Record<string, any>} about one of `ABOUT`
 * @param {string} focus the name of its focus
 * @param {Record<string, any> | null} plan of the query; null if it is as one click makes it
 */
export function nameAbout({ name }, focus, plan = null) {
  const figures = { distance: length(plan?.around?.radius ?? units().radiusM), count: count(plan?.k ?? STANDARD_K) };
  return filled(name, { ...figures, name: focus })
    .slice(0, MOST_CHARACTERS)
    .trim();
}

/** Return the name of a query whose plan changes: one that was made of figures of the plan is made of the new ones. */
export function renamed(name, before, after) {
  const both = (figure) => Boolean(figure(before) && figure(after));
  if (!both((plan) => plan?.around?.radius) && !both((plan) => plan?.k)) return name;
  for (const about of ABOUT) {
    const [start, end] = nameAbout(about, MARK, before).split(MARK);
    const rest = name.slice(start.length, name.length - end.length);
    if (name === start + rest + end && rest) return nameAbout(about, rest, after);
  }
  return name;
}

const MARK = "\u0000"; // stands for the name of the focus

const MOST_CHARACTERS = 100;

/** What a plan reports, as the form has it. */
export function reportOf(plan) {
  return kindOf(plan).report;
}

/**
 * Return the plan to save. It keeps what the form does not show of an edited plan, except for an area that only repeats
 * the old box, or that would cut the answer when the plan turns from inside to outside. Without a new box the old one stays.
 *
 * @param {Record<string, any>} fields `stream`, `report` as `reportOf` returns it, `where`, `box` or null, `shape`, an area that is no box, or
 *   null; for a join `join`, its partners
 *   `{source, name, predicate, distance, where}` and, with a stream, `times` as `timesOf` returns them; with a focus `around`;
 *   for nearest neighbours `k`, and `max_distance` or null; for predicted entries `within`, in seconds; for closest
 *   approaches `close`, `{stream, where, mirrored, withinM, withinS}`; for ranges `aggregate` or null, and `noise` or null
 */
export function planOf(before, fields) {
  const plan = withoutNoise(noiseless(before), fields);
  return fields.noise && fields.report === "inside" ? tracked(plan, fields.noise) : plan;
}

function withoutNoise(before, fields) {
  return (
    { join: joinOf, around: aroundOf, nearest: nearestOf, approach: approachOf, close: closeOf }[fields.report]?.(
      before,
      fields,
    ) ?? rangeOf(before, fields)
  );
}

function rangeOf(before, { stream, report, where, box, shape, aggregate }) {
  const {
    area,
    target,
    within_s: _within,
    join,
    kind,
    compare: old,
    around,
    k,
    max_distance: _max,
    alpha,
    aggregate: _aggregate,
    ...kept
  } = timeless(before);
  const plan = withAggregate({ kind: "range", ...kept, stream, report, where }, aggregate);
  if (shape) return { ...plan, ...(shapedArea(before) && old ? { compare: old } : {}), area: shape };
  const compare = box ? boxWith(box, old) : old;
  if (compare) plan.compare = compare;
  const fixed = !join && !around && !formOf(area);
  const ownArea =
    fixed && area && JSON.stringify(area) !== JSON.stringify(old) && report === (before.report ?? "inside");
  return ownArea ? { ...plan, area } : plan;
}

function approachOf({ target, filters, emit }, { stream, where, box, shape, within }) {
  const area = shape ?? (box ? boxWith(box, formOf(target) ? null : target) : target);
  return {
    stream,
    kind: "approach",
    target: area,
    within_s: within,
    where,
    ...(filters ? { filters } : {}),
    ...(emit ? { emit } : {}),
  };
}

function closeOf(before, { stream, where, box, shape, close }) {
  const { area: own, join: old, mirrored: _mirrored, ...kept } = before?.kind === "closest_approach" ? before : {};
  const { filters, emit } = before ?? {};
  const others = { ...(filters ? { filters } : {}), ...(emit && emit !== "all" ? { emit } : {}) };
  const { where: _where, ...partners } = old ?? {};
  const join = { ...partners, stream: close.stream, ...(close.where ? { where: close.where } : {}) };
  const limits = { within_m: close.withinM, within_s: close.withinS, ...(close.mirrored ? { mirrored: true } : {}) };
  const area = shape ?? (box && boxWith(box, formOf(own) ? null : own));
  return { ...kept, stream, kind: "closest_approach", join, ...limits, where, ...others, ...(area ? { area } : {}) };
}

/** Return what a plan with a focus keeps of the plan before: its area only if that had a focus, too, and no transformations. */
function focused(before) {
  const {
    area,
    target,
    within_s: _within,
    join,
    kind,
    compare,
    report,
    transform,
    around,
    k,
    max_distance: _max,
    aggregate,
    ...kept
  } = timeless(before);
  return told(around && area ? { ...kept, area } : kept);
}

function aroundOf(before, { stream, where, around, aggregate }) {
  const { alpha, ...kept } = focused(before);
  return withAggregate({ ...kept, stream, kind: "range", around, where }, aggregate);
}

function nearestOf(before, { stream, where, around, k, max_distance: farthest }) {
  const plan = { ...focused(before), stream, kind: "knn", k, around, where };
  return farthest ? { ...plan, max_distance: farthest } : plan;
}

function withAggregate(plan, aggregate) {
  return aggregate ? told({ ...plan, aggregate }) : plan;
}

/** Return a plan without `emit` "all", for the kinds of plans that cannot report every element as it comes. */
function told(/** @type {Record<string, any>} */ { emit, ...plan }) {
  return emit && emit !== "all" ? { ...plan, emit } : plan;
}

function joinOf(before, { stream, where, box, shape, join }) {
  const {
    area: own,
    target,
    within_s: _within,
    compare,
    report,
    kind,
    join: old,
    around,
    k,
    max_distance: _max,
    alpha,
    aggregate,
    ...kept
  } = timeless(before);
  const area = around ? undefined : own;
  const {
    layer: _layer,
    stream: _stream,
    stored: _stored,
    predicate: _predicate,
    distance: _distance,
    where: _where,
    ...others
  } = old ?? {};
  const partners = { [join.source]: join.name, predicate: join.predicate, ...others };
  if (join.predicate === "dwithin") partners.distance = join.distance;
  if (join.where) partners.where = join.where;
  const now = { ...kept, stream, kind: "join", where, join: partners };
  const plan =
    join.source === "stream" && join.times && join.times.when !== "now" ? timed(now, before, join.times) : now;
  if (shape) return { ...plan, area: shape };
  return box ? { ...plan, area: boxWith(box, formOf(area) ? null : area) } : plan;
}

/** Return a box of longitudes and latitudes, with the further dimensions of an old box. */
function boxWith({ lo, hi }, old) {
  return { lo: [...lo, ...(old?.lo ?? []).slice(2)], hi: [...hi, ...(old?.hi ?? []).slice(2)] };
}
