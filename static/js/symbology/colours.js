// The colours of classes. Neighbouring ones differ also for the colour-blind, in either theme. Pure.

import { colourAt, css } from "../kinds/sketch/colours.js";
import { CLASSES, MOST_CATEGORIES, OTHER, UNKNOWN } from "./classes.js";

// M. Okabe, K. Ito, "Color Universal Design", 2008. The last one is black, and white on a dark map.
const OKABE_ITO = [
  [230, 159, 0],
  [86, 180, 233],
  [0, 158, 115],
  [240, 228, 66],
  [0, 114, 178],
  [213, 94, 0],
  [204, 121, 167],
];
const LAST = { light: [0, 0, 0], dark: [255, 255, 255] };
const OTHERS = [128, 128, 128];
const ONLY = 0.5; // the share of the scale of a single range
// An outline that stands out against land and sea, whatever the colour within: very dark, or very bright on a dark map.
const EDGES = { light: [22, 35, 46], dark: [226, 234, 240] };
// What is unknown is hollow.
const HOLLOW = { light: [243, 242, 236], dark: [29, 42, 51] };

/** Return the colours `[red, green, blue]` of `count` ranges of numbers, from low to high: Viridis, or of all categories if `count` is null. */
export function coloursOf(count, dark) {
  const theme = dark ? "dark" : "light";
  const ranges = (i) => colourAt(count > 1 ? i / (count - 1) : ONLY, dark);
  const category = (i) => OKABE_ITO[i] ?? LAST[theme];
  const colours = Array.from({ length: CLASSES }, (_, i) =>
    i < (count ?? MOST_CATEGORIES) ? (count === null ? category(i) : ranges(i)) : OTHERS,
  );
  colours[OTHER] = OTHERS;
  colours[UNKNOWN] = HOLLOW[theme];
  return colours;
}

/** Return the outline of all classes. */
export function edgeOf(dark) {
  return EDGES[dark ? "dark" : "light"];
}

/** Return how the canvas writes the colours: `{fills, edge, lines}`; `lines` are for what is drawn without an outline, such as trails. */
export function paintOf(count, dark) {
  const colours = coloursOf(count, dark);
  return {
    fills: colours.map((colour) => css(colour)),
    edge: css(edgeOf(dark)),
    lines: colours.map((colour, i) => css(i === UNKNOWN ? OTHERS : colour)),
  };
}
