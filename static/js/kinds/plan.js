// What plans of all kinds have: the area on the map, and what a plan keeps when it is saved as another one. Pure.

import { boxAround, formOf } from "../shapes.js";

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

/** Return a box of longitudes and latitudes, with the further dimensions of an old box. */
export function boxWith({ lo, hi }, old) {
  return { lo: [...lo, ...(old?.lo ?? []).slice(2)], hi: [...hi, ...(old?.hi ?? []).slice(2)] };
}

/** Return a plan without some keys. */
export function without(plan, keys) {
  return Object.fromEntries(Object.entries(plan ?? {}).filter(([key]) => !keys.includes(key)));
}

/** Return a plan without `emit` "all", for the kinds of plans that cannot report every element as it comes. */
export function told(/** @type {Record<string, any>} */ { emit, ...plan }) {
  return emit && emit !== "all" ? { ...plan, emit } : plan;
}

/** Return what a plan with a focus keeps of the plan before: its area only if that had a focus, too, and no transformations. */
export function focused({
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
}) {
  return told(around && area ? { ...kept, area } : kept);
}

/** Return a plan with an aggregate, if there is one. */
export function withAggregate(plan, aggregate) {
  return aggregate ? told({ ...plan, aggregate }) : plan;
}
