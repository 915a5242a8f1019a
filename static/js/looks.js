// How queries and layers are drawn, the same for all users: a number gives the colour, and whether the line is dashed. Pure.

import { gettext } from "./i18n.js";

export const COLOURS = 8; // of queries, which cannot be taken for those of symbols
export const LAYER_COLOURS = 6;
// Leaflet's dashes of the lines, other than those of what is paused, silent or outside.
export const DASHES = [null, "14 5", "14 4 3 4", "14 4 3 4 3 4"];
export const LINE_NAMES = [gettext("solid"), gettext("dashed"), gettext("dash and dot"), gettext("dash and two dots")];

/** Return the colour and the line of a look. */
export function coloured(look, colours) {
  return { colour: look % colours, line: Math.floor(look / colours) % DASHES.length };
}
