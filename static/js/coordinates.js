// Reads a place that somebody typed or pasted, in the forms in which people write coordinates. Pure.

import { pgettext } from "./i18n.js";

// East is O in German, and O is west in French and Spanish: it counts where the page itself writes it.
const SIDES = `NSEW${pgettext("direction", "E") === "O" ? "O" : ""}`;
const NUMBER = String.raw`[-+\u2212]?\d{1,3}(?:[.,]\d+)?`;
// Degrees, and perhaps minutes and seconds, with or without their signs.
const ANGLE = String.raw`(${NUMBER})\s*(?:[\u00b0\u00ba:d]\s*|\s+|$)?(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:['\u2032\u2019:m]\s*|\s+|$)?(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:"|\u2033|\u201d|''|s)?\s*)?)?`;
const SIDE = `([${SIDES}])?`;
const LETTER = new RegExp(`[${SIDES}]`, "i");
const PLAIN = new RegExp(String.raw`^(${NUMBER})\s*[\u00b0\u00ba]?(?:\s*[,;/]\s*|\s+)(${NUMBER})\s*[\u00b0\u00ba]?$`);
const ONE = new RegExp(String.raw`^${SIDE}\s*${ANGLE}\s*${SIDE}$`, "i");

/**
 * Return the place `{lon, lat}` in degrees that a text says, latitude first unless letters say otherwise: "36.1, -5.4",
 * "36,1 -5,4", "36\u00b008'N 5\u00b021'W", "E 24.94 N 60.17", "geo:36.1,-5.4"; null if it says none.
 */
export function placeIn(text) {
  const written = text
    .trim()
    .replace(/^geo:/i, "")
    .replace(/;u=.*$/, "");
  const plain = PLAIN.exec(written);
  if (plain) return checked(numberOf(plain[1]), numberOf(plain[2]));
  for (const parts of splits(written)) {
    const [first, second] = parts.map(angleOf);
    if (!first || !second) continue;
    if (first.axis === "lat" && second.axis === "lon") return checked(first.deg, second.deg);
    if (first.axis === "lon" && second.axis === "lat") return checked(second.deg, first.deg);
  }
  return null;
}

/** The ways to cut a text into two angles: after or before a letter, or at a comma. */
function* splits(text) {
  for (let at = 1; at < text.length; at++) {
    const parts = [text.slice(0, at), text.slice(at)].map((part) => part.replace(/^[\s,;/]+|[\s,;/]+$/g, ""));
    if (parts.every((part) => LETTER.test(part) && /\d/.test(part))) yield parts;
  }
}

function angleOf(text) {
  const found = ONE.exec(text);
  if (!found) return null;
  const [, before, degrees, minutes, seconds, after] = found;
  if (Boolean(before) === Boolean(after)) return null;
  const side = (before ?? after).toUpperCase();
  const size = numberOf(degrees) + numberOf(minutes ?? "0") / 60 + numberOf(seconds ?? "0") / 3600;
  return { axis: "NS".includes(side) ? "lat" : "lon", deg: "SW".includes(side) ? -size : size };
}

function numberOf(text) {
  return Number(text.replace(",", ".").replace("\u2212", "-"));
}

function checked(lat, lon) {
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180 ? { lon, lat } : null;
}
