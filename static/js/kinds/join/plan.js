// Joins as plans, and in words. Pure except for the chosen units.

import { length, PREDICATES, shapeText, SOURCES } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { formOf } from "../../shapes.js";
import { boxWith } from "../plan.js";
import { joined, NEAR } from "../words.js";

/** Return a plan with which the form begins a join: with some of its partners, if any. */
export function begunJoin(join = {}) {
  return { kind: "join", join };
}

/** Return the plan of a join; `turn(plan)` makes one over event time of it. */
export function joinOf(before, { stream, where, box, shape, join }, turn = (plan) => plan) {
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
  } = before;
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
  const plan = turn({ ...kept, stream, kind: "join", where, join: partners });
  if (shape) return { ...plan, area: shape };
  return box ? { ...plan, area: boxWith(box, formOf(area) ? null : area) } : plan;
}

/** Say what a join looks for; `when(words)` adds at which times. */
export function joinText(plan, titleOf, when = (/** @type {string} */ words) => words) {
  const { predicate, distance } = plan.join;
  const source = /** @type {string} */ (SOURCES.find((one) => plan.join[one]));
  const name = titleOf(source, plan.join[source]);
  const partner = source === "stored" ? filled(gettext("where %(name)s have been"), { name }) : name;
  const words =
    predicate === "dwithin"
      ? NEAR
      : (PREDICATES.find(([known]) => known === predicate)?.[1] ?? `${predicate} %(partner)s`);
  return joined(when(filled(words, { partner, distance: length(distance) })), shapeText(plan.area));
}
