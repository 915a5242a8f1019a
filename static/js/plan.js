// A query plan from the form's fields. Pure.

/**
 * The plan to save. What the form does not show of an edited plan is kept, but an area that only repeated the old box,
 * or that a plan for what is outside would be cut by, goes with it.
 */
export function planOf(before, { stream, report, where, box }) {
  const { area, ...kept } = before ?? {};
  const old = before?.compare ?? { lo: [], hi: [] };
  const compare = { lo: [...box.lo, ...old.lo.slice(2)], hi: [...box.hi, ...old.hi.slice(2)] };
  const plan = { kind: "range", ...kept, stream, compare, report, where };
  const ownArea = area && JSON.stringify(area) !== JSON.stringify(old) && report === (before.report ?? "inside");
  return ownArea ? { ...plan, area } : plan;
}
