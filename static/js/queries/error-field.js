// Finds the field of the query form that an error of the server is about. Pure.

import { FIELD_OF_KEY } from "../kinds/registry.js";

/** The field of the query form that a server's error is about, or null for the form as a whole. */
export function errorField(code, message) {
  const text = `${code} ${message}`.toLowerCase();
  if (/got the unknown/.test(text)) return "plan"; // the message names all keys that there are
  if (/^\w* ((an )?area|target)\b/.test(text) || /report outside needs/.test(text)) return "box";
  if (/\bjoin: where/.test(text)) return "partnerWhere";
  if (/\bwhere:/.test(text)) return "where"; // before the rules below: the message quotes the user's text, which may have their words
  if (/\baway_from\b/.test(text)) return "away";
  const time = /\b(\w+_s) must/.exec(text)?.[1];
  if (time in FIELD_OF_KEY) return FIELD_OF_KEY[time];
  if (/\bthresholds?\b/.test(text)) return "thresholds";
  if (/\baggregate\b/.test(text)) return "aggregate";
  if (/\bmax_distance\b/.test(text)) return "maxDistance";
  if (/\bk must\b/.test(text)) return "k";
  if (/radius|half_widths|polygon/.test(text)) return "shape";
  if (/\baround\b/.test(text)) return "focus";
  if (/\bdistance\b/.test(text)) return "distance";
  if (/\bjoin\b|predicate|\blayer\b/.test(text)) return "partner";
  if (/\bwhere\b|filter|cql/.test(text)) return "where";
  if (/longitude|latitude|\barea\b|\bcompare\b|\blo\b|\bhi\b|rectangle/.test(text)) return "box";
  if (/\bname\b/.test(text) && !/stream/.test(text)) return "name";
  return /stream/.test(text) ? "stream" : null;
}
