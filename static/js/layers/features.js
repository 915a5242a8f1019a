// Features of layers: which to fetch, and how they look. Pure.

import { paddedBox, turnTowards } from "../geometry.js";

const MARGIN = 0.3; // share of the view, on every side: after a small move the features still suffice

/** Return the drawing order of a geometry: 0 for areas, 1 for lines, 2 for points, which lie on top; a collection has its lowest. */
export function featureRank({ type, geometries }) {
  if (type === "GeometryCollection") return geometries.length > 0 ? Math.min(...geometries.map(featureRank)) : 0;
  return type.endsWith("Point") ? 2 : type.endsWith("LineString") ? 1 : 0;
}

/** Return the multiple of 360 degrees that brings a geometry into the copy of the world around a longitude. */
export function turnOf(geometry, centerLonDeg) {
  let first = geometry.coordinates ?? geometry.geometries[0]?.coordinates;
  while (Array.isArray(first?.[0])) [first] = first;
  return first ? turnTowards(first[0], centerLonDeg) : 0;
}

/** Return what to fetch for a rectangle of the map, `{bbox, zoom, serves(view)}`; the box is somewhat larger than the rectangle. */
export function viewOf(sides, zoom, version) {
  const { lo, hi } = paddedBox(sides, MARGIN);
  const width = sides.east - sides.west;
  const height = sides.north - sides.south;
  const view = {
    bbox: [...lo, ...hi].map((degrees) => Math.round(degrees * 1e6) / 1e6),
    zoom,
    version,
    sides,
    truncated: false,
  };
  // Whether the features fetched for this view suffice for another one. If the answer was truncated, only for the same view.
  view.serves = (other) => {
    if (other.zoom !== zoom || other.version !== version) return false;
    const margin = view.truncated ? 0 : MARGIN * 0.99;
    const within = (lower, upper, [from, to], size) => lower >= from - margin * size && upper <= to + margin * size;
    return (
      within(other.sides.west, other.sides.east, [sides.west, sides.east], width) &&
      within(other.sides.south, other.sides.north, [sides.south, sides.north], height)
    );
  };
  return view;
}

/**
 * Return `{of(key), most}`: the number of objects that a feature is paired with, and the largest number of all features.
 *
 * @param {any[]} joins as `store.joinsOf(layer)` returns them
 */
export function pairedCounts(joins) {
  const of = (key) => joins.reduce((sum, { counts }) => sum + (counts.get(key) ?? 0), 0);
  let most = 0;
  for (const { counts } of joins) for (const key of counts.keys()) most = Math.max(most, of(key));
  return { of, most };
}

/** Return the style of a feature by its live count, from faint to full; `share` is the count as a share of the largest one. */
export function countStyle(rank, share, colour) {
  const strength = Math.sqrt(share); // areas and lines are seen by their size: small counts must not vanish
  return {
    color: colour,
    fillColor: colour,
    weight: rank === 1 ? 1.2 + 4.8 * strength : 1 + strength,
    opacity: 0.3 + 0.7 * strength,
    fillOpacity: rank === 0 ? 0.05 + 0.7 * strength : 0.25 + 0.75 * strength,
  };
}

/** Return the drawing order of a layer's features, as `featureRank` does for one; a layer of mixed types counts as areas. */
export function layerRank(types) {
  const ranks = new Set((types ?? []).map((type) => featureRank({ type, geometries: [] })));
  return ranks.size === 1 ? [...ranks][0] : 0;
}

/** Return the counts that a legend shows, from 0 to the largest, in even steps of the colour's strength. */
export function countSteps(most) {
  return [...new Set([0, 1 / 3, 2 / 3, 1].map((strength) => Math.round(strength ** 2 * most)))];
}

/** The largest counts of a layer's features: `[[key, count], ...]`, at most `limit`. */
export function largestCounts(joins, limit) {
  const { of } = pairedCounts(joins);
  const keys = new Set(joins.flatMap(({ counts }) => [...counts.keys()]));
  return [...keys]
    .map((key) => [key, of(key)])
    .sort(([, a], [, b]) => b - a)
    .slice(0, limit);
}

/** Return the style of a feature as Leaflet's path options; `paired` is the colour of a query that pairs it, or null. */
export function featureStyle({ rank, colour: own, accent, hovered, selected, hidden, paired = null }) {
  const colour = paired ?? own;
  const lit = hovered || selected || paired !== null;
  const area = rank === 0;
  return {
    stroke: !hidden,
    fill: !hidden && rank !== 1,
    color: selected ? accent : colour,
    fillColor: selected ? accent : colour,
    weight: (lit ? 2.5 : rank === 2 ? 1.5 : 1.6) + (rank === 1 ? 0.8 : 0),
    opacity: lit ? 1 : 0.8,
    fillOpacity: area ? (lit ? 0.34 : 0.16) : 0.75,
  };
}
