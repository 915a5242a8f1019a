// Puts together what the page shows of reports: the form, its areas on the map, and the requests.

import { FeatureEditor } from "../feature-editor.js";
import { SketchAreas } from "../sketch/areas.js";
import { ReportPanel } from "./panel.js";

const ROOT = "/reports/";

/**
 * @param {object} parts `L`, Leaflet; `map`, a MonitorMap; `store`; `editor`, a RectangleEditor; `palette()`; `layer`, a
 *   HistoryLayer; `now()`; `onOpen()`, which shows the panel; `onDraw()`, before a way is drawn
 */
export function createReports({ L, map, store, editor, palette, layer, now, onOpen, onDraw }) {
  const colour = () => palette().accent;
  const polygons = new FeatureEditor(L, map.leaflet, { colour, onChange: () => areas.follow() });
  const view = () => map.bounds();
  const areas = new SketchAreas(L, map.leaflet, { store, editor, polygons, view, colour, clip: (box) => box, onChange: () => panel.showAreas() });
  const panel = new ReportPanel({ store, areas, layer, now, ask, address, onOpen, onDraw, onBox: (box) => map.fitBox(box) });
  return {
    panel,
    /** Whether the user draws a polygon. */
    get drawing() {
      return areas.drawing;
    },
    stopDrawing: () => areas.stop(),
  };
}

/** Return the address of a report. */
function address(stream, parameters) {
  return `${ROOT}${encodeURIComponent(stream)}?${new URLSearchParams(parameters)}`;
}

/** Return a promise of a report as a document; it fails with the server's words. */
async function ask(stream, parameters) {
  let response;
  try {
    response = await fetch(address(stream, parameters));
  } catch {
    throw new Error("The server cannot be reached. Try again in a moment.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `The server answered with status ${response.status}.`);
  return answer;
}
