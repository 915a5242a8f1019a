// Joins of two streams whose reports are so long before or after each other.

import { filled, gettext, number } from "../../i18n.js";
import { timeJoin } from "../join/time-joins.js";

const LEAST_BIN_S = 1;

export const intervalJoin = timeJoin({
  name: "interval_join",
  when: "interval",
  told: true,
  keys: { lower_s: "beforeS", upper_s: "beforeS", bin_s: "beforeS" },
  times: {
    numbers: ["beforeS", "afterS"],
    standard: { beforeS: 60, afterS: 60 }, // from so long before the object's report to so long after it
    of: ({ lower_s: lowerS, upper_s: afterS }) => ({ beforeS: lowerS === undefined ? undefined : 0 - lowerS, afterS }),
    /** Bins that were as long as the old interval, as they are by default, follow the new one. */
    plan({ lower_s: lower, upper_s: upper, bin_s: bin }, { beforeS, afterS }) {
      const chosen = bin !== undefined && bin !== Math.max(upper - lower, LEAST_BIN_S);
      return { lower_s: 0 - beforeS, upper_s: afterS, ...(chosen ? { bin_s: bin } : {}) };
    },
    errors({ beforeS, afterS }) {
      if (![beforeS, afterS].every(Number.isFinite)) return { beforeS: gettext("Type two numbers of seconds.") };
      return -beforeS > afterS ? { beforeS: gettext("The interval must not end before it begins.") } : {};
    },
    words: (what, { beforeS, afterS }) =>
      filled(gettext("%(what)s, from %(before)s s before to %(after)s s after"), {
        what,
        before: number(beforeS, 3),
        after: number(afterS, 3),
      }),
  },
});
