// What a query's card says of a query in words. Pure.

import { count } from "./format.js";
import { filled, gettext, ngettext } from "./i18n.js";
import { sharedText } from "./teams/rights.js";

const INCIDENTS = {
  info: gettext("info incidents"),
  warning: gettext("warning incidents"),
  critical: gettext("critical incidents"),
};

/** Say what a query asks, what its incidents are, and whose it is. */
export function aboutText(store, query, stream, asked) {
  const where = query.plan?.where;
  const words = where ? gettext("%(stream)s, %(asked)s, where %(filter)s") : gettext("%(stream)s, %(asked)s");
  const team = query.team ? sharedText(store, { team: query.team }) : "";
  return [filled(words, { stream, asked, filter: where }), INCIDENTS[query.severity], ownerText(query), team]
    .filter(Boolean)
    .join(" \u00b7 ");
}

/** Name a query by its number. */
export function numbered(query) {
  return filled(gettext("query %(number)s"), { number: query });
}

function ownerText({ example, mine, owner, shared }) {
  if (example) return gettext("example");
  if (mine === false) return filled(gettext("by %(owner)s"), { owner });
  return shared ? gettext("shared") : "";
}

/** Say of what a number is that of the answer of a join. */
export function inPairs(number) {
  return filled(
    ngettext("objects in the answer, in %(count)s pair", "objects in the answer, in %(count)s pairs", number),
    { count: count(number) },
  );
}

/** Say that an answer is empty. */
export function emptyText(stream, told, lasting) {
  if (lasting !== null) return gettext("No encounter lasts now.");
  return told === null
    ? filled(gettext("No object of %(stream)s matches now."), { stream })
    : gettext("No pair has been told yet.");
}
