// Encounters: pairs of objects of two streams that are near each other for a while.

import { length } from "../../format.js";
import { filled, gettext, number } from "../../i18n.js";
import { timeJoin } from "../join/time-joins.js";
import { AwayFields } from "./fields.js";

const MINUTE_S = 60;
const minutes = (seconds) => (seconds === undefined ? undefined : seconds / MINUTE_S);

export const encounter = timeJoin({
  name: "encounter",
  when: "encounter",
  lasting: true,
  keys: { for_s: "forMin", gap_s: "forMin", away_from: "away" },
  times: {
    numbers: ["forMin", "gapMin"],
    parts: [AwayFields],
    standard: { forMin: 30, gapMin: 10, away: "", awayM: 10_000 },
    of: ({ for_s: forS, gap_s: gapS, away_from: away }) => ({
      forMin: minutes(forS),
      gapMin: minutes(gapS),
      away: away?.layer,
      awayM: away?.distance,
    }),
    plan(_before, { forMin, gapMin, away, awayM }) {
      const layer = away ? { away_from: { layer: away, distance: awayM } } : {};
      return { for_s: forMin * MINUTE_S, gap_s: gapMin * MINUTE_S, ...layer };
    },
    errors({ forMin, gapMin, away, awayM }) {
      const errors = /** @type {Record<string, string>} */ ({});
      if (!(forMin >= 0 && gapMin > 0)) errors.forMin = gettext("Type two numbers of minutes.");
      if (away && !(awayM >= 0)) errors.away = gettext("Type a distance.");
      return errors;
    },
    words(what, { forMin, away, awayM }, _plan, titleOf) {
      const near = filled(gettext("%(what)s for at least %(minutes)s min"), { what, minutes: number(forMin, 3) });
      if (!away) return near;
      const words = gettext("%(what)s, more than %(distance)s from %(layer)s");
      return filled(words, { what: near, distance: length(awayM), layer: titleOf("layer", away) });
    },
  },
});
