// The colours in which the canvases draw.

import { COLOURS, LAYER_COLOURS } from "../looks.js";
import { KINDS } from "../objects/object-kinds.js";
import { pageEvents } from "../page-events.js";
import { colour } from "../theme.js";

/** Return the canvas' colours, read from the style sheet once for each theme. */
export function createPalette() {
  let colours = null;
  const read = () => {
    colours ??= {
      kinds: KINDS.map(colour),
      queries: Array.from({ length: COLOURS }, (_, i) => colour(`q${i}`)),
      layers: Array.from({ length: LAYER_COLOURS }, (_, i) => colour(`layer${i}`)),
      edge: colour("sprite-edge"),
      accent: colour("accent"),
      watched: colour("watched"),
      text: colour("text"),
      surface: colour("surface"),
      count: colour("count"),
      sea: colour("map-sea"),
      land: colour("map-land"),
      coast: colour("map-coast"),
      border: colour("map-border"),
      grid: colour("map-grid"),
      placeName: colour("map-place-name"),
      seaName: colour("map-sea-name"),
    };
    return colours;
  };
  pageEvents.on("theme", () => (colours = null)); // before all others, who read it
  return { read };
}
