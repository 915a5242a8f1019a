// What the address holds of the page's state: "?kiosk=1#zoom/latitude/longitude/stream,stream&tab=events&colour=speed". Pure.
//
// A new key is a line in KEYS, and a line in address-parts.js that says where its value comes from and goes to.

import { LENGTHS_MIN, USUAL_MIN } from "./objects/trails.js";
import { MINUTES } from "./map/course-vectors.js";
import { replayOf, replayText } from "./replay/address.js";
import { isChoice, NOTHING } from "./symbology/colour-by.js";
import { TABS } from "./tabs.js";
import { TABLE_FIELDS, tableHash, tableOf } from "./table/address.js";

/**
 * The keys, in the order in which they are written and applied. Of each: `read(text)` returns its value, undefined if the text is
 * broken; `write(value)` returns its text, null for the usual value, which is left out; `usual`; `step`, whether a change of it is a
 * step of the browser's history, to which Back returns; `search`, whether it stands before the "#".
 */
export const KEYS = {
  kiosk: flag({ search: true }),
  tab: oneOf(TABS, TABS[0], { step: true }),
  query: number({ step: true }), // whose card is open
  incident: number({ step: true }), // that is opened
  select: object({ step: true }), // the selected object
  follow: flag({ step: true }), // whether the map follows it
  filter: text({ step: true }), // of what the map shows
  colour: {
    ...text({ step: true }),
    read: (written) => (isChoice(written) ? written : undefined),
    usual: NOTHING,
    write: (by) => (by === NOTHING ? null : by),
  },
  steps: oneOf(["round", "equal"], "round", { step: true }), // of the colours
  trail: oneOf(LENGTHS_MIN, USUAL_MIN, { step: true }), // in minutes
  vector: oneOf(MINUTES, 0, { step: true }), // in minutes
  theme: oneOf(["light", "dark"], null),
  replay: { usual: null, read: (written) => replayOf(written) ?? undefined, write: replayText },
};
/** Keys that the server or other modules read. */
const OTHERS = ["meter"];

/** Read a hash; null if it does not hold a view. */
export function parseHash(hash) {
  const parts = hash.replace(/^#/, "").split("&")[0].split("/");
  const [zoom, lat, lon] = parts.slice(0, 3).map((part) => (part === "" ? NaN : Number(part)));
  if (![zoom, lat, lon].every(Number.isFinite) || zoom < 0 || zoom > 22 || Math.abs(lat) > 90) return null;
  const streams = parts.length > 3 ? parts[3].split(",").filter(Boolean).map(decoded) : null;
  return { zoom, lat, lon, streams };
}

/** Write a hash; `streams` null for all. */
export function formatHash({ zoom, lat, lon, streams }) {
  const digits = Math.max(2, Math.ceil(zoom / 3));
  const view = `#${Math.round(zoom * 100) / 100}/${lat.toFixed(digits)}/${lon.toFixed(digits)}`;
  return streams ? `${view}/${streams.map(encodeURIComponent).join(",")}` : view;
}

/**
 * Read an address `{search, hash}`.
 *
 * @returns {Record<string, any>} `{view, table, values, faults}`: the view and the table, null without them; the values of the keys that it holds; and the
 *   parts that it does not understand, as they are written
 */
export function readAddress({ search, hash }) {
  const place = hash.replace(/^#/, "").split("&")[0];
  const fields = { true: new URLSearchParams(search), false: new URLSearchParams(hash.slice(place.length + 2)) };
  const view = parseHash(hash);
  const table = tableOf(hash);
  const values = {};
  const faults = place.includes("/") && !view ? [place] : [];
  if (fields.false.has("table") && !table) faults.push(`table=${fields.false.get("table")}`);
  for (const [before, some] of Object.entries(fields)) {
    for (const [name, written] of some) {
      const key = Object.hasOwn(KEYS, name) && String(Boolean(KEYS[name].search)) === before ? KEYS[name] : null;
      const value = key?.read(written);
      if (value !== undefined) values[name] = value;
      else if (key || !(before === "true" ? OTHERS : TABLE_FIELDS).includes(name)) faults.push(`${name}=${written}`);
    }
  }
  return { view, table, values, faults };
}

/** Write an address as `{search, hash}`; `search` is the present one, of which other keys stay as they are. */
export function writeAddress({ view, table, values, search = "" }) {
  const before = new URLSearchParams(search);
  const after = new URLSearchParams();
  for (const [name, key] of Object.entries(KEYS)) {
    const written = name in values ? key.write(values[name]) : null;
    if (key.search && written === null) before.delete(name);
    else if (key.search) before.set(name, written);
    else if (written !== null) after.set(name, written);
  }
  const parts = [formatHash(view), after.size > 0 ? `&${after}` : "", tableHash(table)];
  return { search: before.size > 0 ? `?${before}` : "", hash: parts.join("") };
}

/** Return whether a step of the history lies between two addresses `{search, hash}`. */
export function isStep(a, b) {
  const [before, after] = [readAddress(a), readAddress(b)];
  if (Boolean(before.table) !== Boolean(after.table) || before.table?.source !== after.table?.source) return true;
  return Object.entries(KEYS).some(
    ([name, key]) => key.step && JSON.stringify(before.values[name]) !== JSON.stringify(after.values[name]),
  );
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function oneOf(choices, usual, more = {}) {
  return {
    usual,
    read: (written) => choices.find((choice) => String(choice) === written),
    write: (value) => (value === usual ? null : String(value)),
    ...more,
  };
}

function flag(more) {
  return {
    usual: false,
    read: (written) => ({ 1: true, 0: false })[written],
    write: (on) => (on ? "1" : null),
    ...more,
  };
}

function text(more) {
  return { usual: "", read: (written) => written || undefined, write: (value) => value || null, ...more };
}

function number(more) {
  return {
    usual: null,
    read: (written) => (/^[1-9]\d{0,14}$/.test(written) ? Number(written) : undefined),
    write: (value) => (value === null ? null : String(value)),
    ...more,
  };
}

/** A stream and a key, with a slash between them. */
function object(more) {
  const read = (written) => {
    const [, stream, key] = /^([^/]+)\/(.+)$/s.exec(written) ?? [];
    return stream && { stream, key };
  };
  return { usual: null, read, write: (value) => value && `${value.stream}/${value.key}`, ...more };
}
