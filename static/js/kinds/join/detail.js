// The partner's report of a pair over event time, `{timeMs, lon, lat}`, and the window or the encounter, `{windowMs, sinceMs, untilMs}`. Pure.

import { middle } from "../../geometry.js";
import { inMs, middles } from "../../store/columns.js";

const SPANS = ["window_us", "since_us", "until_us"];

function told(timeMs, lon, lat, spansUs) {
  const [windowMs, sinceMs, untilMs] = spansUs.map((us) => inMs(us));
  return { timeMs, lon, lat, windowMs, sinceMs, untilMs };
}

export const partnerReport = {
  ofBatch(batch) {
    const [timesUs, boxes, ...spans] = ["partner_time_us", "partner_bounds", ...SPANS].map((name) =>
      batch.getChild(name),
    );
    if (!timesUs || timesUs.nullCount === batch.numRows) return null;
    const [lon, lat] = [middles(boxes, 0), middles(boxes, 1)];
    return (row) => {
      if (timesUs.get(row) === null) return {};
      const spansUs = spans.map((column) => column?.get(row));
      return told(inMs(timesUs.get(row)), lon[row], lat[row], spansUs);
    };
  },
  ofJson({ partner: { time_us: timeUs, bounds }, ...row }) {
    if (timeUs === undefined) return {};
    const [lon, lat] = [0, 1].map((axis) =>
      middle(bounds[axis] ?? -Infinity, bounds[axis + bounds.length / 2] ?? Infinity),
    );
    const spansUs = SPANS.map((name) => row[name]);
    return told(inMs(timeUs), lon, lat, spansUs);
  },
};
