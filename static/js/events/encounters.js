// The encounters that last: pairs of objects that stay near each other. Pure.

import { parsed, title } from "../format.js";

/** Return an encounter as a row of an answer tells it: both reports are those of the least distance so far. */
export function encounterOf(rows, row) {
  const partner = rows.partners[row];
  return {
    key: rows.keys[row],
    text: rows.properties[row],
    partner: title(partner.key, parsed(partner.properties)),
    partnerKey: partner.key,
    partnerPlace: [partner.lon, partner.lat],
    lon: rows.lon[row],
    lat: rows.lat[row],
    nearestMs: Math.max(rows.timeMs[row], partner.timeMs),
    distance: partner.distance,
    sinceMs: partner.sinceMs,
    untilMs: partner.untilMs,
  };
}

/** Return the name of the pair of an encounter. */
export function pairOf({ key, partnerKey }) {
  return JSON.stringify([key, partnerKey]);
}

/** Whether a row is one of an encounter; after an edit, a row of the plan before may still come. */
export function isEncounter(rows, row) {
  return Number.isFinite(rows.partners?.[row]?.sinceMs ?? NaN);
}
