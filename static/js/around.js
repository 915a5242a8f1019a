// Shapes around a place on the earth, as queries with a focus have them. Pure; longitude first, lengths in metres.

import { MAX_LATITUDE_DEG, clamp, wrapLongitude } from "./geometry.js";

export const LONGEST_M = 20_100_000; // a radius that reaches everywhere

const DEG = Math.PI / 180;
const EARTH_RADIUS_M = 6_371_008.8;
// WGS 84, as streaming/operators/metres.py has it.
const AXIS_M = 6_378_137;
const ECCENTRICITY_2 = (2 - 1 / 298.257223563) / 298.257223563;
const CORNERS = 96;

/** Return the place at a distance and a bearing (degrees from north) from another place; its longitude may exceed 180. */
export function destination(/** @type {any[]} */ [lon, lat], bearingDeg, metres) {
  const [along, bearing, phi] = [metres / EARTH_RADIUS_M, bearingDeg * DEG, lat * DEG];
  const sine = Math.sin(phi) * Math.cos(along) + Math.cos(phi) * Math.sin(along) * Math.cos(bearing);
  const east = Math.atan2(Math.sin(bearing) * Math.sin(along) * Math.cos(phi), Math.cos(along) - Math.sin(phi) * sine);
  return [lon + east / DEG, Math.asin(clamp(sine, -1, 1)) / DEG];
}

/** The distance between two places over the surface (haversine). */
export function distance([lon, lat], [toLon, toLat]) {
  const [dLat, dLon] = [(toLat - lat) * DEG, (toLon - lon) * DEG];
  const h = Math.sin(dLat / 2) ** 2 + Math.cos(lat * DEG) * Math.cos(toLat * DEG) * Math.sin(dLon / 2) ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Return how many metres a degree of longitude and a degree of latitude have, at a latitude. */
export function localMetres(lat) {
  const curved = 1 - ECCENTRICITY_2 * Math.sin(lat * DEG) ** 2;
  const across = AXIS_M / Math.sqrt(curved);
  return [across * Math.cos(lat * DEG) * DEG, ((across * (1 - ECCENTRICITY_2)) / curved) * DEG];
}

/** Return a circle as `{ring, filled}`. If it holds one pole, the ring closes along the edge of the map; if both, it is a line. */
export function circle(place, radius) {
  const poles = [90 - place[1], 90 + place[1]].map((deg) => deg * DEG * EARTH_RADIUS_M < radius);
  const ring = [];
  for (let i = 0; i <= CORNERS; i++) ring.push(unwrapped(destination(place, (i * 360) / CORNERS, radius), ring.at(-1)));
  if (!poles[0] && !poles[1]) return { ring: ring.slice(0, CORNERS), filled: true };
  if (poles[0] && poles[1]) return { ring: ring.slice(0, CORNERS), filled: false };
  const edge = poles[0] ? MAX_LATITUDE_DEG : -MAX_LATITUDE_DEG;
  return { ring: [...ring, [ring.at(-1)[0], edge], [ring[0][0], edge]], filled: true };
}

/** Return the ring of a rectangle, given half of its widths; with a width missing or null it reaches around the earth. */
export function rectangle([lon, lat], [across, along]) {
  const [perLon, perLat] = localMetres(lat);
  const dx = Math.min((across ?? Infinity) / perLon, 180);
  const dy = (along ?? Infinity) / perLat;
  const [south, north] = [clamp(lat - dy, -90, 90), clamp(lat + dy, -90, 90)];
  return [
    [lon - dx, south],
    [lon + dx, south],
    [lon + dx, north],
    [lon - dx, north],
  ];
}

/** The ring of a polygon whose vertices are metres to the east and to the north of a place. */
export function polygon([lon, lat], vertices) {
  const [perLon, perLat] = localMetres(lat);
  return vertices.map(([east, north]) => [lon + east / perLon, clamp(lat + north / perLat, -90, 90)]);
}

/**
 * Return the shape of a plan's range around a place, as `{ring, filled}`. For nearest neighbours it is the circle of the
 * largest distance, null without one.
 */
export function shapeOf({ around, max_distance: farthest }, place) {
  if (around.radius) return circle(place, around.radius);
  if (farthest) return { ...circle(place, farthest), filled: false };
  if (around.half_widths) return { ring: rectangle(place, around.half_widths), filled: true };
  return around.polygon ? { ring: polygon(place, around.polygon), filled: true } : null;
}

/** Return the places of a plan's handles, by name; the corners of a polygon have none. */
export function handlesOf(plan, place) {
  const { around, max_distance: farthest } = plan;
  const handles = around.at ? { place } : {};
  if (around.radius) return { ...handles, radius: destination(place, 90, around.radius) };
  if (farthest) return { ...handles, farthest: destination(place, 90, farthest) };
  if (!around.half_widths) return handles;
  const [, [east], [, north]] = rectangle(place, around.half_widths);
  const [across, along] = around.half_widths;
  if (across) handles.across = [east, place[1]];
  if (along) handles.along = [place[0], north];
  if (across && along) handles.both = [east, north];
  return handles;
}

/** Return a plan after a handle of it was dragged to the place `to`; `place` is the middle of its range before. */
export function dragged(plan, place, name, to) {
  const { around } = plan;
  if (name === "place")
    return { ...plan, around: { ...around, at: [rounded(wrapLongitude(to[0]), 5), rounded(to[1], 5)] } };
  if (name === "radius" || name === "farthest") return withLength(plan, name, reach(distance(place, to)));
  const [perLon, perLat] = localMetres(place[1]);
  const wider = name === "along" ? plan : withLength(plan, "across", reach(Math.abs(to[0] - place[0]) * perLon));
  return name === "across" ? wider : withLength(wider, "along", reach(Math.abs(to[1] - place[1]) * perLat));
}

/** Return the length of a plan that a handle changes, in metres. */
export function lengthOf({ around, max_distance: farthest }, name) {
  return { radius: around.radius, farthest, across: around.half_widths?.[0], along: around.half_widths?.[1] }[name];
}

/** Return a plan with a handle's length changed by some steps. A step is a tenth of the length's power of ten: 100 m from 1 to 10 km. */
export function stepped(plan, name, steps) {
  const length = lengthOf(plan, name);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(length)) - 1);
  return withLength(plan, name, clamp(rounded(length + steps * unit, 2), 1, LONGEST_M));
}

function withLength(plan, name, length) {
  if (name === "farthest") return { ...plan, max_distance: length };
  if (name === "radius") return { ...plan, around: { ...plan.around, radius: length } };
  const widths = [...plan.around.half_widths];
  widths[name === "across" ? 0 : 1] = length;
  return { ...plan, around: { ...plan.around, half_widths: widths } };
}

/** Round a dragged length to whole metres and three digits; it is at least one metre. */
function reach(metres) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(metres, 1))) - 2);
  return Math.max(1, Math.round(metres / step) * step);
}

function rounded(value, decimals) {
  return Math.round(value * 10 ** decimals) / 10 ** decimals;
}

/** Return a place in the copy of the world that is nearest to the place before it. */
function unwrapped(/** @type {any[]} */ [lon, lat], before) {
  return [before ? lon + 360 * Math.round((before[0] - lon) / 360) : lon, lat];
}
