// What the page knows of each kind of query: how the form calls it, and what its answer is made of. Pure.

/** The kinds that join reports over event time. */
export const TIMED = ["window_join", "interval_join"];

// A kind claims the plans that those before it do not.
const KINDS = [
  { report: "join", claims: ({ kind }) => kind === "join", paired: true },
  { report: "join", claims: ({ kind }) => TIMED.includes(kind), told: true },
  { report: "nearest", claims: ({ kind }) => kind === "knn", ranked: true },
  { report: "around", claims: ({ around }) => Boolean(around) },
  { report: "outside", claims: ({ report }) => report === "outside" },
];
const INSIDE = { report: "inside" };

/**
 * Return the kind of a plan: `report`, what it reports, as the form has it ("inside", "outside", "around", "nearest", "join");
 * `paired`, whether its answer has pairs; `told`, whether it tells each pair of reports once and keeps no answer; `ranked`, whether its
 * members have ranks.
 */
export function kindOf(plan) {
  return KINDS.find(({ claims }) => plan && claims(plan)) ?? INSIDE;
}
