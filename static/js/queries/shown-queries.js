// Which queries the page shows, and so subscribes to. Pure.

import { boxesMeet } from "../geometry.js";
import { kindOf } from "../kinds/registry.js";
import { boxOf } from "../kinds/plan.js";

/**
 * Return whether the page shows a query. It shows all queries while there are few of them, and always the user's own, which
 * raise events. Of the others it shows those whose cards are in view or open, those whose events are listed alone, and
 * those that are on the map.
 *
 * @param {Record<string, any>} query
 * @param {Record<string, any>} seen `few`; `cards` and `opened`, sets of numbers; `events`, the number of a query or null; `area`, the box
 *   `{lo, hi}` that the map shows
 */
export function isShown(query, { few, cards, opened, events, area }) {
  const { query: number, mine } = query;
  return few || mine !== false || cards.has(number) || opened.has(number) || events === number || onMap(query, area);
}

/** Return whether a query may have something to draw in an area: its rectangle, or an answer that no rectangle bounds. */
function onMap(/** @type {Record<string, any>} */ { shown, plan }, area) {
  const box = boxOf(plan);
  return shown && (!box || kindOf(plan).report === "outside" || boxesMeet(box, area));
}
