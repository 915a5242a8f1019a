// Joins over event time: what their plans have beside those of joins, and what the form shows of it. Pure.

import { told as withoutAll, without } from "../plan.js";
import { joinOf, joinText } from "./plan.js";

const KEYS = ["lateness_s", "idle_s", "mirrored"];
const STANDARD = { latenessS: 10, idleS: 30 };

/**
 * Return the times of a plan, with what is usual where it has none: `when`, `latenessS`, `idleS`, and what each of the kinds has.
 *
 * @param {any[]} kinds
 * @param {Record<string, any>} plan
 */
export function timesAmong(kinds, plan) {
  const timed = kinds.filter(({ times }) => times);
  const own = Object.assign({}, ...timed.map(({ times }) => timesIn(times, plan ?? {})));
  const { lateness_s: latenessS, idle_s: idleS } = plan ?? {};
  const when = timed.find(({ claims }) => claims(plan ?? {}))?.when ?? "now";
  return { when, ...STANDARD, ...given({ latenessS, idleS }), ...own };
}

function timesIn({ standard, of }, plan) {
  return { ...standard, ...given(of(plan)) };
}

function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/**
 * Return a kind of join over event time. It keeps what the form does not show of the plan before.
 *
 * @param {Record<string, any>} own `name`, as its plans have it; `keys` that only it has, each with the field of the form that shows it; `when`, `times`,
 *   and `told` or `lasting`, as a `Kind` has them
 */
export function timeJoin({ name, keys, when, times, told = false, lasting = false }) {
  const timed = ({ emit, ...now }, before, { latenessS, idleS, ...chosen }) => ({
    ...(told ? now : withoutAll({ emit, ...now })),
    kind: name,
    ...times.plan(before, chosen),
    lateness_s: latenessS,
    idle_s: idleS,
    ...(before.mirrored === undefined ? {} : { mirrored: before.mirrored }),
  });
  return {
    report: "join",
    when,
    times,
    told,
    lasting,
    claims: ({ kind }) => kind === name,
    makes: ({ join }) => join.source === "stream" && join.times?.when === when,
    leave: (plan) => without(plan, [...Object.keys(keys), ...KEYS, ...(told ? ["emit"] : [])]),
    plan: (kept, fields, before) => joinOf(kept, fields, (now) => timed(now, before, fields.join.times)),
    words: (plan, titleOf) => joinText(plan, titleOf, (near) => times.words(near, timesIn(times, plan), plan, titleOf)),
    fieldOf: { ...keys, lateness_s: "latenessS", idle_s: "latenessS" },
  };
}
