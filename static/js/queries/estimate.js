// What the page asks before a query is added for which there may be no room, given the server's estimate. Pure.

import { filled, gettext, LOCALE } from "../i18n.js";

const ROUGH = new Intl.NumberFormat(LOCALE, {
  notation: "compact",
  compactDisplay: "long",
  maximumSignificantDigits: 2,
});

/** Write a number as roughly as an estimate is: "9 million". */
export function rough(amount) {
  return ROUGH.format(amount);
}

/** Return the question whether a query is wanted all the same, and its two answers; `edits` says that it is saved already. */
export function questionOf({ pairs, matches, room }, edits) {
  return {
    question: filled(
      gettext(
        "This query would compare about %(pairs)s pairs of objects, and find up to %(matches)s. A batch has room for about %(room)s, and a pair that is found counts as ten. If there is no room, the query is left out and tried again later.",
      ),
      { pairs: rough(pairs), matches: rough(matches), room: rough(room) },
    ),
    yes: edits ? gettext("Save anyway") : gettext("Add anyway"),
    no: gettext("Make it smaller"),
  };
}
