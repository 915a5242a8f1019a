// Pure geometry of the map: Web Mercator, headings, rectangles. Longitude comes first, as in GeoJSON.

export const HEADINGS = 64;
export const MAX_LATITUDE_DEG = 85.0511287798;

const DEG = Math.PI / 180;
const EARTH_M = 2 * Math.PI * 6_371_008.8; // around the equator of a sphere

/** Web Mercator x of a longitude, 0 at -180 degrees and 1 at 180. */
export function mercatorX(lonDeg) {
  return lonDeg / 360 + 0.5;
}

/** Web Mercator y of a latitude, 0 at the northern edge of the map and 1 at the southern. */
export function mercatorY(latDeg) {
  const sine = Math.sin(clamp(latDeg, -MAX_LATITUDE_DEG, MAX_LATITUDE_DEG) * DEG);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

/** Longitude of a Web Mercator x; the inverse of `mercatorX`. */
export function longitudeOf(x) {
  return (x - 0.5) * 360;
}

/** Latitude of a Web Mercator y; the inverse of `mercatorY`. */
export function latitudeOf(y) {
  return (2 * Math.atan(Math.exp((0.5 - y) * 2 * Math.PI)) - Math.PI / 2) / DEG;
}

/** Return how much of the width of the world a metre has at a Web Mercator y. */
export function mercatorPerMetre(y) {
  return Math.cosh((0.5 - y) * 2 * Math.PI) / EARTH_M; // the cosine is 1 / cos(latitude)
}

export function clamp(value, lo, hi) {
  return Math.min(Math.max(value, lo), hi);
}

/** Column of the sprite sheet for a course; 0 is north, and an unknown course counts as north. */
export function headingIndex(courseDeg) {
  if (!(courseDeg > -Infinity && courseDeg < Infinity)) return 0;
  const index = Math.round((courseDeg / 360) * HEADINGS) % HEADINGS;
  return index < 0 ? index + HEADINGS : index;
}

/** Longitude brought into [-180, 180). */
export function wrapLongitude(lonDeg) {
  return lonDeg - 360 * Math.floor((lonDeg + 180) / 360);
}

/** Return the multiple of 360 degrees that brings a longitude nearest to another one. */
export function turnTowards(lonDeg, centerDeg) {
  return 360 * Math.round((centerDeg - lonDeg) / 360);
}

/**
 * Return a rectangle as the box of a plan. The longitude of `lo` is within [-180, 180), that of `hi` at most 360 degrees
 * further, so a box across the antimeridian ends beyond 180 (RFC 7946 5.2 has the case). Latitudes are within [-90, 90].
 */
export function normalisedBox({ west, south, east, north }) {
  const lats = [clamp(Math.min(south, north), -90, 90), clamp(Math.max(south, north), -90, 90)];
  const [low, high] = [Math.min(west, east), Math.max(west, east)];
  if (high - low >= 360) return { lo: [-180, lats[0]], hi: [180, lats[1]] };
  const start = wrapLongitude(low);
  return { lo: [start, lats[0]], hi: [start + (high - low), lats[1]] };
}

/** The box of a viewport, enlarged on every side by a share of its size. */
export function paddedBox({ west, south, east, north }, share) {
  const dx = (east - west) * share;
  const dy = (north - south) * share;
  return normalisedBox({ west: west - dx, south: south - dy, east: east + dx, north: north + dy });
}

/** Return whether two boxes of longitude and latitude meet, on any turn round the world; a missing bound is infinite. */
export function boxesMeet(a, b) {
  const meet = (axis, turn) =>
    (a.lo[axis] ?? -Infinity) + turn <= (b.hi[axis] ?? Infinity) &&
    (b.lo[axis] ?? -Infinity) <= (a.hi[axis] ?? Infinity) + turn;
  return meet(1, 0) && [-360, 0, 360].some((turn) => meet(0, turn));
}

/** Return a plan's box as a rectangle, in the copy of the world nearest to a longitude; for a missing bound take the world's. */
export function rectangleOf(box, centerLonDeg) {
  const [west, south] = [box.lo[0] ?? -180, box.lo[1] ?? -90];
  const [east, north] = [box.hi[0] ?? 180, box.hi[1] ?? 90];
  const turn = turnTowards((west + east) / 2, centerLonDeg);
  return { west: west + turn, south, east: east + turn, north };
}

/** Round a box to five decimals, about a metre, as the page shows and saves it. */
export function roundedBox({ lo, hi }) {
  const round = (value) => Math.round(value * 1e5) / 1e5;
  return { lo: lo.map(round), hi: hi.map(round) };
}

/** Return the middle of an interval; if one end is infinite, the other end; NaN if both are, or it is not known where. */
export function middle(lo, hi) {
  if (lo >= Number.MAX_VALUE) return NaN;
  if (Number.isFinite(lo) && Number.isFinite(hi)) return (lo + hi) / 2;
  return Number.isFinite(lo) ? lo : Number.isFinite(hi) ? hi : NaN;
}

/** Whether a box has bounds of both longitude and latitude, as a rectangle needs. */
export function isFlatBox({ lo, hi }) {
  return [lo, hi].every((ends) => Array.isArray(ends) && ends.length >= 2 && ends.slice(0, 2).every(Number.isFinite));
}

/** Return the middle of a rectangle, half as wide and high. */
export function shrunk({ west, south, east, north }) {
  const [dx, dy] = [(east - west) / 4, (north - south) / 4];
  return { west: west + dx, south: Math.max(south + dy, -85), east: east - dx, north: Math.min(north - dy, 85) };
}
