// The kinds of objects that have a symbol of their own: what the object says it is, or else the icon of its stream. Pure.

import { gettext } from "../i18n.js";
import { tokenReader } from "./property-text.js";

/** The kinds, by the names of their symbols and colours. */
export const KINDS = ["ship", "aircraft", "bus", "station", "aid", "craft", "radio", "beacon", "beacon-test", "other"];

/** What a kind is called. */
export const KIND_WORDS = {
  ship: gettext("ship"),
  aircraft: gettext("aircraft"),
  bus: gettext("bus"),
  station: gettext("base station"),
  aid: gettext("aid to navigation"),
  craft: gettext("auxiliary craft"),
  radio: gettext("handheld radio"),
  beacon: gettext("distress beacon"),
  "beacon-test": gettext("beacon under test"),
  other: gettext("other"),
};

export const BEACON = KINDS.indexOf("beacon");
const [TESTED, OTHER] = ["beacon-test", "other"].map((kind) => KINDS.indexOf(kind));

/** What Lookout's decoders write into the property `kind` (docs/decoders.md), and the kind of each. */
const DECODED = {
  ship: "ship",
  aircraft: "aircraft",
  vehicle: "bus",
  "base station": "station",
  "aid to navigation": "aid",
  "auxiliary craft": "craft",
  "handheld radio": "radio",
  "search and rescue transmitter": "beacon",
  "man overboard": "beacon",
  "emergency beacon": "beacon",
};

/** The words that a filter may compare `kind` with, whether or not an object on the map has them. */
export const DECODED_KINDS = Object.keys(DECODED);

// What other feeds call the same, in small letters with spaces.
const KNOWN = new Map(
  Object.entries({
    ...DECODED,
    ...{ vessel: "ship", boat: "ship", plane: "aircraft", airplane: "aircraft", helicopter: "aircraft", bus: "bus" },
    ...{ basestation: "station", aton: "aid", buoy: "aid", lighthouse: "aid", sart: "beacon", mob: "beacon" },
    ...{ "ais sart": "beacon", epirb: "beacon", "epirb ais": "beacon", "sar aircraft": "aircraft" },
  }).map(([word, kind]) => [word, KINDS.indexOf(kind)]),
);

const kindToken = tokenReader("kind");
const testToken = tokenReader("test");

/** Return the index in `KINDS` of a stream's icon; an unknown icon is "other". */
export function kindOf(icon) {
  return KNOWN.get(icon) ?? OTHER;
}

/** Return the index in `KINDS` of an object, given its properties as a JSON text and the kind of its stream. */
export function kindIn(text, ofStream) {
  const token = kindToken(text);
  if (token?.[0] !== '"') return ofStream;
  const word = token.slice(1, -1).toLowerCase().replaceAll(/[_-]/g, " ");
  const kind = KNOWN.get(word) ?? ofStream;
  return kind === BEACON && testToken(text) === "true" ? TESTED : kind;
}
