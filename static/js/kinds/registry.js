// What the page knows of each kind of query: how the form calls it, and what its answer is made of. Pure.

// A kind claims the plans that those before it do not.
const KINDS = [
  { report: "join", when: "now", claims: ({ kind }) => kind === "join", paired: true },
  { report: "join", when: "window", claims: ({ kind }) => kind === "window_join", told: true },
  { report: "join", when: "interval", claims: ({ kind }) => kind === "interval_join", told: true },
  { report: "join", when: "encounter", claims: ({ kind }) => kind === "encounter", lasting: true },
  { report: "rule", claims: ({ kind }) => kind === "rule", ruled: true },
  { report: "sketch", claims: ({ kind }) => kind === "sketch", asked: true },
  { report: "nearest", claims: ({ kind }) => kind === "knn", ranked: true },
  { report: "around", claims: ({ around }) => Boolean(around) },
  { report: "approach", claims: ({ kind }) => kind === "approach" },
  { report: "close", claims: ({ kind }) => kind === "closest_approach", paired: true, close: true },
  { report: "inside", claims: ({ kind }) => kind === "track", tracked: true },
  { report: "outside", claims: ({ report }) => report === "outside" },
];
const INSIDE = { report: "inside" };

/**
 * Return the kind of a plan: `report`, what it reports, as the form has it ("inside", "outside", "approach", "close", "around", "nearest", "join", "sketch", "rule");
 * `when`, of a join, which reports it pairs ("now": the last ones, "window", "interval", "encounter"); `paired`, whether its answer
 * has pairs; `told`, whether it tells each pair once and keeps no answer; `lasting`, whether its answer has encounters; `ranked`,
 * whether its members have ranks; `asked`, whether it asks a sketch, so that its answer has documents in place of objects;
 * `close`, whether its pairs have places where they will be closest; `ruled`, whether it is a rule over the answers of other queries; `tracked`, whether it is about tracks, whose reports are noisy.
 */
export function kindOf(plan) {
  return KINDS.find(({ claims }) => plan && claims(plan)) ?? INSIDE;
}
