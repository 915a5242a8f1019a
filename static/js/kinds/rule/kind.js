// Rules over the answers of other queries.

import { alarmText, ruleText } from "./words.js";

export const rule = {
  report: "rule",
  ruled: true,
  claims: ({ kind }) => kind === "rule",
  words: (plan, titleOf) => ruleText(plan, titleOf.bind(null, "query"), titleOf.bind(null, "value")),
  alarm: alarmText,
};
