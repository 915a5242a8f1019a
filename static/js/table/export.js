// Writes the rows of the table as CSV (RFC 4180) and as GeoJSON (RFC 7946). Pure.

import { csvText } from "../csv.js";
import { ALTITUDE, fieldName, HEARD, LATITUDE, LONGITUDE, PLACE } from "./columns.js";

/** Return the rows as CSV, with a heading. A place is two columns. */
export function csv(rows, shown) {
  const names = columnsOf(shown);
  const cells = Array.from({ length: rows.n }, (_, row) => names.map((name) => content(rows, name, rows.slots[row])));
  return csvText(names.map(fieldName), cells);
}

/** Return the rows as GeoJSON: points with the shown columns as properties. */
export function geoJson(rows, shown) {
  const { objects } = rows.store;
  const names = shown.filter((name) => ![PLACE, LONGITUDE, LATITUDE].includes(name));
  const features = [];
  for (let row = 0; row < rows.n; row++) {
    const slot = rows.slots[row];
    const place = [objects.lon[slot], objects.lat[slot]];
    if (Number.isFinite(objects.alt[slot])) place.push(objects.alt[slot]);
    const geometry = place.every(Number.isFinite) ? { type: "Point", coordinates: place } : null;
    const properties = Object.fromEntries(names.map((name) => [fieldName(name), content(rows, name, slot)]));
    features.push(JSON.stringify({ type: "Feature", id: objects.keys[slot], geometry, properties }));
  }
  return `{"type":"FeatureCollection","features":[\n${features.join(",\n")}\n]}\n`;
}

function columnsOf(shown) {
  return [...new Set(shown.flatMap((name) => (name === PLACE ? [LONGITUDE, LATITUDE] : [name])))];
}

/** Return a value as it is, without a unit: a number, a text, or null. When an object was heard is a time, since its age would soon be wrong. */
function content({ columns, store }, name, slot) {
  if (name === HEARD)
    return Number.isFinite(store.objects.timeMs[slot]) ? new Date(store.objects.timeMs[slot]).toISOString() : null;
  const number = columns.number(name, slot);
  if (Number.isFinite(number)) return number;
  return name === ALTITUDE ? null : columns.text(name, slot);
}
