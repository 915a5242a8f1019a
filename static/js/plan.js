// A query plan from the form's fields. Pure.

/** The box of a plan on the map: what it compares with, or where a join looks; null for the whole map, and about a focus. */
export function boxOf(plan) {
  return plan?.around ? null : (plan?.compare ?? plan?.area ?? null);
}

export const STANDARD_RADIUS_M = 9260;
const STANDARD_K = 10;

/** The queries that one click makes about a focus `{stream, key}` or `{at}` in a stream: their name without the focus, and plan. */
export const ABOUT = [
  { action: "watch", icon: "around", name: "5 nm around", plan: (stream, focus) => ({ stream, kind: "range", around: { ...focus, radius: STANDARD_RADIUS_M } }) },
  { action: "nearest", icon: "nearest", name: "10 nearest to", plan: (stream, focus) => ({ stream, kind: "knn", k: STANDARD_K, around: focus }) },
  {
    action: "count",
    icon: "count",
    name: "Count 5 nm around",
    plan: (stream, focus) => ({ stream, kind: "range", around: { ...focus, radius: STANDARD_RADIUS_M }, aggregate: { function: "count" } }),
  },
];

/** The name of a query about something that is called so. */
export function nameAbout({ name }, focus) {
  return `${name} ${focus}`.slice(0, MOST_CHARACTERS).trim();
}

const MOST_CHARACTERS = 100;

/**
 * The plan to save. What the form does not show of an edited plan is kept, but an area that only repeated the old box,
 * or that a plan for what is outside would be cut by, goes with it. Without a box the old one stays.
 *
 * @param {object} fields `stream`, `report` ("inside", "outside", "join"), `where`, `box` or null; for a join `join`, its
 *   partners `{source, name, predicate, distance, where}`
 */
export function planOf(before, fields) {
  return fields.report === "join" ? joinOf(before, fields) : rangeOf(before, fields);
}

function rangeOf(before, { stream, report, where, box }) {
  const { area, join, kind, compare: old, ...kept } = before ?? {};
  const plan = { kind: "range", ...kept, stream, report, where };
  const compare = box ? boxWith(box, old) : old;
  if (compare) plan.compare = compare;
  const ownArea = !join && area && JSON.stringify(area) !== JSON.stringify(old) && report === (before.report ?? "inside");
  return ownArea ? { ...plan, area } : plan;
}

function joinOf(before, { stream, where, box, join }) {
  const { area, compare, report, kind, join: old, ...kept } = before ?? {};
  const { layer: _layer, stream: _stream, stored: _stored, predicate: _predicate, distance: _distance, where: _where, ...others } = old ?? {};
  const partners = { [join.source]: join.name, predicate: join.predicate, ...others };
  if (join.predicate === "dwithin") partners.distance = join.distance;
  if (join.where) partners.where = join.where;
  const plan = { ...kept, stream, kind: "join", where, join: partners };
  return box ? { ...plan, area: boxWith(box, area) } : plan;
}

/** A box of longitudes and latitudes, with the further dimensions of an old one. */
function boxWith({ lo, hi }, old) {
  return { lo: [...lo, ...(old?.lo ?? []).slice(2)], hi: [...hi, ...(old?.hi ?? []).slice(2)] };
}
