// Joins of two streams in windows of event time.

import { filled, gettext, number } from "../../i18n.js";
import { timeJoin } from "../join/time-joins.js";

export const windowJoin = timeJoin({
  name: "window_join",
  when: "window",
  told: true,
  keys: { window_s: "windowS", slide_s: "slideS", start_s: "windowS" },
  times: {
    numbers: ["windowS", "slideS"],
    optional: ["slideS"], // windows follow each other without it
    standard: { windowS: 60, slideS: null },
    of: ({ window_s: windowS, slide_s: slideS }) => ({ windowS, slideS: slideS === windowS ? null : slideS }),
    plan({ start_s: start }, { windowS, slideS }) {
      const slide = slideS === null ? {} : { slide_s: slideS };
      return { window_s: windowS, ...slide, ...(start === undefined ? {} : { start_s: start }) };
    },
    errors({ windowS, slideS }) {
      if (!(windowS > 0)) return { windowS: gettext("Type how many seconds a window is long.") };
      const wrong = slideS !== null && !(slideS > 0);
      return wrong ? { slideS: gettext("Type after how many seconds the next window begins, or nothing.") } : {};
    },
    words(what, { windowS, slideS }) {
      const window = number(windowS, 3);
      if (slideS === null) return filled(gettext("%(what)s, in the same %(window)s s"), { what, window });
      const words = gettext("%(what)s, in the same %(window)s s, every %(slide)s s");
      return filled(words, { what, window, slide: number(slideS, 3) });
    },
  },
});
