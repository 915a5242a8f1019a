// Geodesics on the ellipsoid WGS 84. Pure; longitude first, lengths in metres, angles in degrees.
//
// T. Vincenty, "Direct and inverse solutions of geodesics on the ellipsoid with application of nested equations", Survey Review 23(176), 1975.

import { distance as sphericalDistance } from "../around.js";
import { clamp } from "../geometry.js";

const AXIS_M = 6_378_137;
const FLATTENING = 1 / 298.257223563;
const MINOR_M = AXIS_M * (1 - FLATTENING);
const ECCENTRICITY = Math.sqrt(FLATTENING * (2 - FLATTENING));
const DEG = Math.PI / 180;
const ROUNDS = 100;
const ENOUGH = 1e-12; // radians between two rounds

/**
 * Return the geodesic between two places as `{lengthM, bearingDeg}`; the bearing is that at its beginning, from north.
 *
 * Between places that are almost opposite each other the formula does not converge; there the sphere's is used, wrong by up to 0.5 %.
 */
export function inverse([lon, lat], [toLon, toLat]) {
  const [u1, u2] = [lat, toLat].map((phi) => Math.atan((1 - FLATTENING) * Math.tan(clamp(phi, -90, 90) * DEG)));
  const [sin1, cos1, sin2, cos2] = [Math.sin(u1), Math.cos(u1), Math.sin(u2), Math.cos(u2)];
  const difference = wrapped(toLon - lon) * DEG;
  let lambda = difference;
  for (let round = 0; round < ROUNDS; round++) {
    const [sinL, cosL] = [Math.sin(lambda), Math.cos(lambda)];
    const [east, north] = [cos2 * sinL, cos1 * sin2 - sin1 * cos2 * cosL];
    const sinSigma = Math.hypot(east, north);
    if (sinSigma === 0) break;
    const cosSigma = sin1 * sin2 + cos1 * cos2 * cosL;
    const sigma = Math.atan2(sinSigma, cosSigma);
    const sinAlpha = (cos1 * cos2 * sinL) / sinSigma;
    const cos2Alpha = 1 - sinAlpha ** 2;
    const middle = cos2Alpha < 1e-15 ? 0 : cosSigma - (2 * sin1 * sin2) / cos2Alpha;
    const before = lambda;
    lambda = difference + along(sinAlpha, cos2Alpha, sigma, sinSigma, cosSigma, middle);
    if (Math.abs(lambda) > Math.PI) break;
    if (Math.abs(lambda - before) > ENOUGH) continue;
    const [a, b] = series(cos2Alpha);
    return {
      lengthM: MINOR_M * a * (sigma - correction(b, middle, sinSigma, cosSigma)),
      bearingDeg: bearing(Math.atan2(east, north) / DEG),
    };
  }
  return {
    lengthM: sphericalDistance([lon, lat], [toLon, toLat]),
    bearingDeg: sphericalBearing([lon, lat], [toLon, toLat]),
  };
}

/** Return the place at a bearing and a distance; its longitude may exceed 180. */
export function direct([lon, lat], bearingDeg, lengthM) {
  const [sinA, cosA] = [Math.sin(bearingDeg * DEG), Math.cos(bearingDeg * DEG)];
  const tan1 = (1 - FLATTENING) * Math.tan(clamp(lat, -90, 90) * DEG);
  const cos1 = 1 / Math.hypot(1, tan1);
  const sin1 = tan1 * cos1;
  const sinAlpha = cos1 * sinA;
  const cos2Alpha = 1 - sinAlpha ** 2;
  const [a, b] = series(cos2Alpha);
  const start = Math.atan2(tan1, cosA);
  let sigma = lengthM / (MINOR_M * a);
  let [sinS, cosS, middle] = [0, 1, 1];
  for (let round = 0; round < ROUNDS; round++) {
    [sinS, cosS, middle] = [Math.sin(sigma), Math.cos(sigma), Math.cos(2 * start + sigma)];
    const before = sigma;
    sigma = lengthM / (MINOR_M * a) + correction(b, middle, sinS, cosS);
    if (Math.abs(sigma - before) <= ENOUGH) break;
  }
  const across = sin1 * sinS - cos1 * cosS * cosA;
  const toLat = Math.atan2(sin1 * cosS + cos1 * sinS * cosA, (1 - FLATTENING) * Math.hypot(sinAlpha, across));
  const lambda = Math.atan2(sinS * sinA, cos1 * cosS - sin1 * sinS * cosA);
  return [lon + (lambda - along(sinAlpha, cos2Alpha, sigma, sinS, cosS, middle)) / DEG, toLat / DEG];
}

/** Return places along the geodesic between two others, both included, each in the copy of the world nearest to the one before. */
export function path(from, to, steps) {
  const { lengthM, bearingDeg } = inverse(from, to);
  const between = Array.from({ length: steps - 1 }, (_, i) => direct(from, bearingDeg, (lengthM * (i + 1)) / steps));
  const places = [from];
  for (const [lon, lat] of [...between, to]) places.push([lon + 360 * Math.round((places.at(-1)[0] - lon) / 360), lat]);
  return places;
}

/** Return what a closed ring of places covers, in square metres. Its edges are straight in the cylindrical equal-area projection. */
export function ringArea(ring) {
  let [sum, turn] = [0, 0];
  ring.forEach(([lon, lat], i) => {
    const [fromLon, fromLat] = ring.at(i - 1);
    const across = wrapped(lon - fromLon) * DEG;
    turn += across;
    sum += (across * (zone(lat) + zone(fromLat))) / 2;
  });
  const aroundPole = Math.abs(turn) > Math.PI;
  return aroundPole ? 2 * Math.PI * zone(90) - Math.abs(sum) : Math.abs(sum);
}

/** Return the area between the equator and a latitude, for a radian of longitude. */
function zone(lat) {
  const sine = Math.sin(lat * DEG);
  const e = ECCENTRICITY;
  return (MINOR_M ** 2 / 2) * (sine / (1 - (e * sine) ** 2) + Math.log((1 + e * sine) / (1 - e * sine)) / (2 * e));
}

/** The series A and B of Vincenty. */
function series(cos2Alpha) {
  const u2 = (cos2Alpha * (AXIS_M ** 2 - MINOR_M ** 2)) / MINOR_M ** 2;
  return [
    1 + (u2 / 16384) * (4096 + u2 * (-768 + u2 * (320 - 175 * u2))),
    (u2 / 1024) * (256 + u2 * (-128 + u2 * (74 - 47 * u2))),
  ];
}

function correction(b, middle, sine, cosine) {
  const quarter = cosine * (2 * middle ** 2 - 1) - (b / 6) * middle * (4 * sine ** 2 - 3) * (4 * middle ** 2 - 3);
  return b * sine * (middle + (b / 4) * quarter);
}

/** The difference of longitude on the sphere from that on the ellipsoid. */
function along(sinAlpha, cos2Alpha, sigma, sine, cosine, middle) {
  const c = (FLATTENING / 16) * cos2Alpha * (4 + FLATTENING * (4 - 3 * cos2Alpha));
  return (1 - c) * FLATTENING * sinAlpha * (sigma + c * sine * (middle + c * cosine * (2 * middle ** 2 - 1)));
}

function sphericalBearing([lon, lat], [toLon, toLat]) {
  const across = (toLon - lon) * DEG;
  const north =
    Math.cos(lat * DEG) * Math.sin(toLat * DEG) - Math.sin(lat * DEG) * Math.cos(toLat * DEG) * Math.cos(across);
  return bearing(Math.atan2(Math.sin(across) * Math.cos(toLat * DEG), north) / DEG);
}

function bearing(degrees) {
  return (degrees + 360) % 360;
}

function wrapped(degrees) {
  return degrees - 360 * Math.round(degrees / 360);
}
