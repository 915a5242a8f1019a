// What the menu of moving queries is about: an object, or a place.

import { rectangle } from "../around.js";
import { place, title } from "../format.js";
import { normalisedBox, wrapLongitude } from "../geometry.js";
import { units } from "../units.js";

/** Return the target of the menu for an object. */
export function aboutObject(store, stream, key) {
  const slot = store.objects.slot(stream, key);
  const name = slot === undefined ? key : title(key, store.objects.properties(slot));
  return { stream, focus: { stream, key }, name, it: "it" };
}

/** Return the target of the menu for a place: it queries the stream with most objects there, or with the nearest object. */
export function aboutPlace(store, shown, at) {
  const [[west, south], , [east, north]] = rectangle(at, [units().radiusM, units().radiusM]);
  const there = [
    ...store.objects.countIn(normalisedBox({ west, south, east, north })).keys(),
    store.objects.streamNear(at),
    ...store.streams.keys(),
  ];
  const stream = there.find((name) => store.streams.get(name)?.enabled !== false && shown(name));
  return { stream, focus: { at }, name: place(...at, 2), it: "here" };
}

/** Return a place of the map as [longitude, latitude], rounded to about a metre. */
export function placeOf({ lng, lat }) {
  return [wrapLongitude(lng), lat].map((degrees) => Math.round(degrees * 1e5) / 1e5);
}
