// Where and when the two of a pair will be closest: `closest`, `{timeMs, afterS, places}`. Pure.

import { inMs } from "../../store/columns.js";

export const closest = {
  ofBatch(batch) {
    const names = ["closest_us", "closest_s", "closest_places"];
    const [timesUs, seconds, places] = names.map((name) => batch.getChild(name));
    if (!timesUs || timesUs.nullCount === batch.numRows) return null;
    return (row) => {
      if (timesUs.get(row) === null) return {};
      const [lon, lat, partnerLon, partnerLat] = places.get(row);
      const both = [
        [lon, lat],
        [partnerLon, partnerLat],
      ];
      return { closest: { timeMs: inMs(timesUs.get(row)), afterS: seconds.get(row), places: both } };
    };
  },
  ofJson: ({ closest: told }) =>
    told ? { closest: { timeMs: inMs(told.time_us), afterS: told.after_s, places: told.places } } : {},
};
