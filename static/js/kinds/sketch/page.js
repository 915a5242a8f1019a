// Puts together what the page shows of sketches: the density on the map, and the panel Statistics.

import { FeatureEditor } from "../../layers/feature-editor.js";
import { onEscape } from "../../page-events.js";
import { recall, remember } from "../../remembered.js";
import { SketchAreas } from "./areas.js";
import { SketchAsker } from "./asker.js";
import { createDensityLayer } from "./density-layer.js";
import { createDensityLegend } from "./density-legend.js";
import { Density } from "./density.js";
import { SketchPanel } from "./panel.js";

/**
 * @param {Record<string, any>} parts `L`, Leaflet; `map`, a MonitorMap; `store`; `socket`; `editor`, a RectangleEditor; `palette()`; `isDark()`;
 *   `now()`; `onOpen()`, which shows the panel; `onSaved(reply)`, called with the reply about a saved query
 */
export function createSketches({ L, map, store, socket, editor, palette, isDark, now, onOpen, onSaved }) {
  const asker = new SketchAsker(socket, {
    pulse: (stream) => store.streams.get(stream)?.health?.elements ?? store.streams.get(stream)?.newestMs,
    visible: () => document.visibilityState === "visible",
  });
  const view = () => map.bounds();
  const colour = () => palette().accent;
  const density = new Density(map.leaflet, {
    store,
    asker,
    layer: createDensityLayer(L, { isDark, palette }).addTo(map.leaflet),
    createLegend: createDensityLegend,
    isDark,
    view,
    chosen: recall("density"),
    onChoose: (chosen) => remember("density", chosen),
    onVeil: () => map.objects.invalidate(),
  });
  const polygons = new FeatureEditor(L, map.leaflet, { colour, onChange: () => areas.follow() });
  const areas = new SketchAreas(L, map.leaflet, {
    store,
    editor,
    polygons,
    view,
    colour,
    onChange: () => panel.showAreas(),
  });
  const panel = new SketchPanel({
    store,
    asker,
    areas,
    isDark,
    now,
    ask: (message) => socket.request(message),
    onOpen,
    onSaved,
  });
  onEscape("statistics", () => areas.drawing && (areas.stop(), true));
  return {
    asker,
    density,
    panel,
    /** The part of the layer control that switches densities. */
    switches: {
      dense: (name) => density.stream?.name === name,
      onDense: (name, on) => density.choose({ stream: on ? name : null }),
    },
    /** Whether the user draws a polygon. */
    get drawing() {
      return areas.drawing;
    },
  };
}
