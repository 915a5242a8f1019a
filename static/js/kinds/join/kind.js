// Joins of objects as they are now with a layer, a stream, or stored positions of one.

import { PartnerFields } from "../partner-fields.js";
import { JoinFields } from "./fields.js";
import { joinOf, joinText } from "./plan.js";

export const join = {
  report: "join",
  when: "now",
  paired: true,
  claims: ({ kind }) => kind === "join",
  makes: ({ join: { source, times } }) => source !== "stream" || (times?.when ?? "now") === "now",
  plan: (kept, fields) => joinOf(kept, fields),
  words: (plan, titleOf) => joinText(plan, titleOf),
  form: { parts: [PartnerFields, JoinFields], pairs: true },
};
