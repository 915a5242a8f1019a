// Areas of plans that are polygons, circles or corridors: outlines, sizes, boxes, and what lies in them. Pure; longitude first.

import { circle, destination, distance, localMetres } from "./around.js";
import { clamp, wrapLongitude } from "./geometry.js";

export const MOST_VERTICES = 1000;

const DEG = Math.PI / 180;
const AUTHALIC_M = 6_371_007.2; // the radius of the sphere that is as large as the earth
// WGS 84, as streaming/operators/geodesics.py has it.
const AXIS_M = 6_378_137;
const ECCENTRICITY_2 = (2 - 1 / 298.257223563) / 298.257223563;
const MEAN_M = 6_371_008.8;
const LEAST_LATITUDE_M = 110_574;
const EQUATOR_DEGREE_M = 111_319;
const ARC_DEG = 7.5; // between two corners of a round end
const CLOSER = 0.02; // of an edge: the second look for its nearest place
const STEPS = [2, 48]; // the fewest and the most corners along an edge of a corridor
const HALVINGS = 12;

/** Return "polygon", "circle" or "corridor" for an area that has a shape; null for a box, and without an area. */
export function formOf(area) {
  if (area?.circle) return "circle";
  if (area?.corridor) return "corridor";
  return area?.type ? "polygon" : null;
}

/** Return the polygons of a GeoJSON Polygon or MultiPolygon, each as its rings. */
export function polygonsOf({ type, coordinates }) {
  return type === "MultiPolygon" ? coordinates : [coordinates];
}

/** Return all places that an area with a shape is made of. */
export function placesOf(area) {
  if (area.circle) return [area.circle.center];
  return area.corridor ? area.corridor.line : polygonsOf(area).flat(2);
}

/** How many corners polygons have, or the line of a corridor. */
export function cornersOf(area) {
  if (area.corridor) return area.corridor.line.length;
  return polygonsOf(area)
    .flat()
    .reduce((sum, ring) => sum + ring.length - 1, 0);
}

/** Return the box about an area with a shape, as the engine has it; null in longitude where it reaches around the earth. */
export function boxAround(area) {
  const [xs, ys] = [0, 1].map((axis) => placesOf(area).map((place) => place[axis]));
  const [west, south, east, north] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  const reach = reachOf(area);
  const up = reach / LEAST_LATITUDE_M;
  const farthest = Math.max(Math.abs(south), Math.abs(north)) + up;
  const side = farthest < 89.99 ? reach / (EQUATOR_DEGREE_M * Math.cos(farthest * DEG)) : Infinity;
  const [low, high] = [clamp(south - up, -90, 90), clamp(north + up, -90, 90)];
  if (!(east - west + 2 * side < 360)) return { lo: [null, low], hi: [null, high] };
  return { lo: [west - side, low], hi: [east + side, high] };
}

function reachOf({ circle: disc, corridor }) {
  return disc ? disc.radius_m : corridor ? corridor.width_m / 2 : 0;
}

/** Return an area whose longitudes begin within [-180, 180), as plans have them. */
export function normalised(area) {
  const least = Math.min(...placesOf(area).map(([lon]) => lon));
  const turn = wrapLongitude(least) - least;
  return moved(area, ([lon, lat]) => [rounded(lon + turn), rounded(clamp(lat, -90, 90))]);
}

/** Return an area with each of its places changed by a function. */
export function moved(area, place) {
  if (area.circle) return { circle: { ...area.circle, center: place(area.circle.center) } };
  if (area.corridor) return { corridor: { ...area.corridor, line: area.corridor.line.map(place) } };
  const each = (list, depth) => list.map((inner) => (depth === 0 ? place(inner) : each(inner, depth - 1)));
  return { type: area.type, coordinates: each(area.coordinates, area.type === "Polygon" ? 1 : 2) };
}

/**
 * Return how an area is drawn: `fill`, polygons of rings, and `rule`, by which they are filled; `lines`, its border; and `ring`,
 * one ring about it, for a look whether a place is within.
 */
export function drawnAs(area) {
  if (area.corridor) return corridorAs(area.corridor);
  if (!area.circle) {
    const polygons = polygonsOf(area);
    return { fill: polygons, rule: "evenodd", lines: polygons.flat(), ring: polygons[0][0] };
  }
  const { ring, filled } = round(area.circle);
  return { fill: filled ? [[ring]] : [], rule: "evenodd", lines: [[...ring, ring[0]]], ring };
}

/** Return the ring of a circle on the ellipsoid; where it holds a pole, that of `around.circle`. */
function round({ center, radius_m: radius }) {
  const spherical = circle(center, radius);
  if (spherical.ring.length > 96 || !spherical.filled) return spherical;
  return { ring: spherical.ring.map((place) => scaled(center, place, radius)), filled: true };
}

/** Move a place that lies about `metres` from another one, such that it does so on the ellipsoid. */
function scaled(from, to, metres) {
  const share = metres / apart(from, to);
  return [from[0] + (to[0] - from[0]) * share, clamp(from[1] + (to[1] - from[1]) * share, -90, 90)];
}

function corridorAs({ line, width_m: width }) {
  const capsules = [];
  const border = [];
  for (let i = 1; i < line.length; i++) {
    const ring = capsule(line[i - 1], line[i], width / 2);
    if (!ring) continue;
    capsules.push([ring]);
    border.push(...partsOutside([...ring, ring[0]], (place) => lineDistance(line, place) < 0.4985 * width));
  }
  return {
    fill: capsules,
    rule: "nonzero",
    lines: border.filter((part) => part.length > 1),
    ring: capsules[0]?.[0] ?? [],
  };
}

/** Return the parts of a line that do not lie inside, as lines; where one begins or ends between two places, that place is looked up. */
function partsOutside(line, inside) {
  const parts = [];
  let before = /** @type {any} */ (null);
  for (const place of line) {
    const now = { place, inside: inside(place) };
    if (before && before.inside !== now.inside) {
      const edge = crossing(before, now, inside);
      if (now.inside) parts.at(-1).push(edge);
      else parts.push([edge]);
    } else if (!before && !now.inside) parts.push([]);
    if (!now.inside) parts.at(-1).push(place);
    before = now;
  }
  return parts;
}

/** Return the place between two, of which one is inside, where that changes. */
function crossing(a, b, inside) {
  let [low, high] = [0, 1];
  const at = (share) => a.place.map((value, axis) => value + share * (b.place[axis] - value));
  for (let turn = 0; turn < HALVINGS; turn++) {
    const middle = (low + high) / 2;
    if (inside(at(middle)) === a.inside) low = middle;
    else high = middle;
  }
  return at((low + high) / 2);
}

/** Return the ring of the places within a distance of an edge; null for an edge without a length. */
function capsule(from, to, metres) {
  const at = (share) => [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
  const bearing = (/** @type {any[]} */ [, lat]) => {
    const [perLon, perLat] = localMetres(clamp(lat, -89.9, 89.9));
    return Math.atan2((to[0] - from[0]) * perLon, (to[1] - from[1]) * perLat) / DEG;
  };
  if (from[0] === to[0] && from[1] === to[1]) return null;
  const reach = (place, degrees) => scaled(place, near(destination(place, degrees, metres), place), metres);
  const steps = clamp(Math.ceil(distance(from, to) / (2 * metres)), ...STEPS);
  const side = (sign) =>
    Array.from({ length: steps + 1 }, (_, i) => at(i / steps)).map((place) => reach(place, bearing(place) + sign * 90));
  const end = (place, first) =>
    Array.from({ length: 180 / ARC_DEG - 1 }, (_, i) => reach(place, bearing(place) + first + (i + 1) * ARC_DEG));
  return [...side(-1), ...end(to, -90), ...side(1).reverse(), ...end(from, 90)];
}

function near(/** @type {any[]} */ [lon, lat], /** @type {any[]} */ [other]) {
  return [lon + 360 * Math.round((other - lon) / 360), lat];
}

/** Return whether an area with a shape contains a place. */
export function contains(area, [lon, lat]) {
  if (area.circle) return apart(area.circle.center, [lon, lat]) <= area.circle.radius_m;
  if (area.corridor) return lineDistance(area.corridor.line, [lon, lat]) <= area.corridor.width_m / 2;
  const turns = [0, 360, -360];
  return polygonsOf(area).some((rings) => turns.some((turn) => within(rings, [lon + turn, lat])));
}

/** Even-odd rule over all rings, so a hole is not within. */
function within(rings, [x, y]) {
  let inside = false;
  for (const ring of rings) {
    for (let i = 1; i < ring.length; i++) {
      const [[fromX, fromY], [toX, toY]] = [ring[i - 1], ring[i]];
      if (toY > y !== fromY > y && x < fromX + ((y - fromY) / (toY - fromY)) * (toX - fromX)) inside = !inside;
    }
  }
  return inside;
}

/** Return the length of the least way over the ellipsoid between two places, by the arc over the straight line: exact below 10 km. */
export function apart(from, to) {
  return arc(rectangular(from), rectangular(to));
}

function arc(a, b) {
  const chord = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  return 2 * MEAN_M * Math.asin(Math.min(1, chord / (2 * MEAN_M)));
}

function rectangular(/** @type {any[]} */ [lon, lat]) {
  const [x, y] = [lon * DEG, lat * DEG];
  const across = AXIS_M / Math.sqrt(1 - ECCENTRICITY_2 * Math.sin(y) ** 2);
  return [
    across * Math.cos(y) * Math.cos(x),
    across * Math.cos(y) * Math.sin(x),
    across * (1 - ECCENTRICITY_2) * Math.sin(y),
  ];
}

/** Return how far a place is from a line whose edges are straight in degrees. */
export function lineDistance(line, place) {
  const target = rectangular(place);
  let least = Infinity;
  for (let i = 1; i < line.length; i++) least = Math.min(least, edgeDistance(line[i - 1], line[i], target));
  return least;
}

function edgeDistance(from, to, target) {
  const pieces = Math.max(1, Math.ceil(Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])) / 4));
  let least = Infinity;
  for (let piece = 0; piece < pieces; piece++) {
    const at = (share) =>
      rectangular([0, 1].map((axis) => from[axis] + ((to[axis] - from[axis]) * (piece + share)) / pieces));
    const about = nearestShare(at, 0, 1, target);
    const exact = nearestShare(at, Math.max(0, about - CLOSER), Math.min(1, about + CLOSER), target);
    least = Math.min(least, arc(at(exact), target));
  }
  return least;
}

/** Return the share of a way, between two shares, at which the straight line through the earth between them is nearest. */
function nearestShare(at, from, to, target) {
  const [start, end] = [at(from), at(to)];
  const way = end.map((value, i) => value - start[i]);
  const squared = way.reduce((sum, value) => sum + value * value, 0);
  const along = squared && way.reduce((sum, value, i) => sum + value * (target[i] - start[i]), 0) / squared;
  return from + (to - from) * clamp(along, 0, 1);
}

/** Return the size of an area as `{squareM, lengthM}`: what it covers, and how long its border is, or the line of a corridor. */
export function sizeOf(area) {
  if (area.circle) {
    const { radius_m: radius } = area.circle;
    return {
      squareM: 2 * Math.PI * AUTHALIC_M ** 2 * (1 - Math.cos(radius / AUTHALIC_M)),
      lengthM: 2 * Math.PI * radius,
    };
  }
  if (area.corridor) {
    const { line, width_m: width } = area.corridor;
    const lengthM = lineLength(line);
    return { squareM: lengthM * width + (Math.PI * width ** 2) / 4, lengthM };
  }
  const polygons = polygonsOf(area);
  const squareM = polygons.reduce(
    (sum, [outer, ...holes]) => sum + ringSize(outer) - holes.reduce((s, hole) => s + ringSize(hole), 0),
    0,
  );
  return { squareM, lengthM: polygons.flat().reduce((sum, ring) => sum + lineLength(ring), 0) };
}

export function lineLength(line) {
  return line.slice(1).reduce((sum, place, i) => sum + distance(line[i], place), 0);
}

/** What a closed ring covers. An edge is taken to be straight in the cylindrical equal-area projection. */
function ringSize(ring) {
  const twice = ring
    .slice(1)
    .reduce(
      (sum, [lon, lat], i) => sum + (lon - ring[i][0]) * DEG * (Math.sin(lat * DEG) + Math.sin(ring[i][1] * DEG)),
      0,
    );
  return Math.abs(twice / 2) * AUTHALIC_M ** 2;
}

/** Return whether a closed ring crosses or touches itself. */
export function crossesItself(ring) {
  const edges = ring.length - 1;
  for (let i = 0; i < edges; i++) {
    for (let j = i + 2; j < edges; j++) {
      if (i === 0 && j === edges - 1) continue; // neighbours
      if (meet(ring[i], ring[i + 1], ring[j], ring[j + 1])) return true;
    }
  }
  return false;
}

function meet(a, b, c, d) {
  const side = (p, q, r) => Math.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]));
  return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
}

/**
 * Return the area about a feature's geometry: a polygon as it is, a corridor about a line, a circle about a point. Null for
 * several lines or points, for a collection, and for more vertices than an area may have.
 */
export function areaAbout({ type, coordinates }, { widthM, radiusM }) {
  const flat = (list) => (Array.isArray(list[0]) ? list.map(flat) : list.slice(0, 2)); // without altitudes
  if (type === "Point") return normalised({ circle: { center: flat(coordinates), radius_m: radiusM } });
  const area =
    type === "LineString"
      ? { corridor: { line: flat(coordinates), width_m: widthM } }
      : type.endsWith("Polygon")
        ? { type, coordinates: flat(coordinates) }
        : null;
  return area && placesOf(area).length <= MOST_VERTICES ? normalised(area) : null;
}

/** Seven decimals are a centimetre. */
function rounded(degrees) {
  return Math.round(degrees * 1e7) / 1e7;
}

/** Round a dragged length to whole metres and three digits; it is at least one metre. */
export function wholeLength(metres) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(metres, 1))) - 2);
  return Math.max(1, Math.round(metres / step) * step);
}

/** Return a length changed by some steps. A step is a tenth of the length's power of ten: 100 m from 1 to 10 km. */
export function steppedLength(metres, steps) {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(metres)) - 1);
  return Math.max(1, Math.round((metres + steps * unit) * 100) / 100);
}

/** Return a place on the border of a corridor, beside its longest edge, but not beside the middle of it. */
export function besideLongest({ line, width_m: width }) {
  const edges = line.slice(1).map((to, i) => [line[i], to]);
  const [from, to] = edges.reduce((a, b) => (distance(...b) > distance(...a) ? b : a));
  const middle = [0, 1].map((axis) => from[axis] + 0.3 * (to[axis] - from[axis]));
  const [perLon, perLat] = localMetres(clamp(middle[1], -89.9, 89.9));
  const bearing = Math.atan2((to[0] - from[0]) * perLon, (to[1] - from[1]) * perLat) / DEG;
  return near(destination(middle, bearing - 90, width / 2), middle);
}

/** Return whether an area, a box or one with a shape, contains a place. */
export function covers(area, place) {
  if (!area.lo) return contains(area, place);
  const { lo, hi } = area;
  const between = (axis, value) => value >= (lo[axis] ?? -Infinity) && value <= (hi[axis] ?? Infinity);
  return between(1, place[1]) && [0, 360, -360].some((turn) => between(0, place[0] + turn));
}

/**
 * Count the objects of a stream that an area contains, and how that differs from another area.
 *
 * @param {Record<string, any>} objects of the store
 * @param {Record<string, any>} before the other area, or null
 * @returns {Record<string, any>} `{inside, came, left}`
 */
export function changeOf(objects, stream, before, after) {
  const counts = { inside: 0, came: 0, left: 0 };
  for (const slot of objects.byStream.get(stream)?.values() ?? []) {
    const place = [objects.lon[slot], objects.lat[slot]];
    if (!Number.isFinite(place[0])) continue;
    const now = covers(after, place);
    if (now) counts.inside++;
    if (!before || now === covers(before, place)) continue;
    counts[now ? "came" : "left"]++;
  }
  return counts;
}

/** Return the corners of an area as text, a line `longitude, latitude` for each; null for polygons with holes, or several. */
export function cornersText(area) {
  if (formOf(area) === "polygon" && (polygonsOf(area).length > 1 || polygonsOf(area)[0].length > 1)) return null;
  const places = area.corridor ? area.corridor.line : polygonsOf(area)[0][0].slice(0, -1);
  return places.map(([lon, lat]) => `${rounded(lon)}, ${rounded(lat)}`).join("\n");
}

/** Return the places that such a text has; null if a line is not two numbers. */
export function cornersFrom(text) {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const places = lines.map((line) => line.split(/[\s,;]+/).map(Number));
  return places.every((place) => place.length === 2 && place.every(Number.isFinite)) ? places : null;
}
