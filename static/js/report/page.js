// Puts together what the page shows of reports: the form, and its areas on the map.

import { FeatureEditor } from "../layers/feature-editor.js";
import { onEscape } from "../page-events.js";
import { SketchAreas } from "../kinds/sketch/areas.js";
import { address, ask } from "./api.js";
import { ReportPanel } from "./panel.js";

/**
 * @param {Record<string, any>} parts `L`, Leaflet; `map`, a MonitorMap; `store`; `editor`, a RectangleEditor; `palette()`; `layer`, a
 *   HistoryLayer; `now()`; `onOpen()`, which shows the panel; `onDraw()`, before a way is drawn
 */
export function createReports({ L, map, store, editor, palette, layer, now, onOpen, onDraw }) {
  const colour = () => palette().accent;
  const polygons = new FeatureEditor(L, map.leaflet, { colour, onChange: () => areas.follow() });
  const view = () => map.bounds();
  const areas = new SketchAreas(L, map.leaflet, {
    store,
    editor,
    polygons,
    view,
    colour,
    clip: (box) => box,
    tab: "history",
    onChange: () => panel.showAreas(),
  });
  const panel = new ReportPanel({
    store,
    areas,
    layer,
    now,
    ask,
    address,
    onOpen,
    onDraw,
    onBox: (box) => map.fitBox(box),
  });
  onEscape("report", () => areas.drawing && (areas.stop(), true));
  return {
    panel,
    /** Whether the user draws a polygon. */
    get drawing() {
      return areas.drawing;
    },
  };
}
