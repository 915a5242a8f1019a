// What the search of the bar looks through. Each source returns what it found as `{name, about, ...}`, the best first.

import { placeIn } from "./coordinates.js";
import { place, title } from "./format.js";
import { filled, gettext, LOCALE } from "./i18n.js";

const OBJECTS = 8;
const OTHERS = 5; // features, and towns
const MOST_LAYERS = 20;
const MOST_MATCHES = 200; // objects that are looked at for the best
const LEAST_CHARACTERS = 2; // of what is asked of the server, or looked up among towns
const FEATURE_ZOOM = 8; // detail that suffices to know where a feature is

/** The place that a text says in coordinates. */
export function typedPlace(text) {
  const at = placeIn(text);
  return at ? [{ ...at, name: place(at.lon, at.lat), about: gettext("Coordinates") }] : [];
}

/** The objects on the map with a text in their name or key. */
export function foundObjects({ objects, streams }, text) {
  const wanted = text.toLowerCase();
  const found = [];
  for (let slot = 0; slot < objects.size && found.length < MOST_MATCHES; slot++) {
    if (!objects.alive[slot]) continue;
    const key = objects.keys[slot];
    if (!key.toLowerCase().includes(wanted) && !objects.texts[slot].toLowerCase().includes(wanted)) continue;
    const name = title(key, objects.properties(slot));
    const rank = rankOf([name, key], wanted);
    const stream = objects.streams[slot];
    const about = `${streams.get(stream)?.title ?? stream} \u00b7 ${key}`;
    if (rank < Infinity) found.push({ slot, name, about, rank });
  }
  return best(found, OBJECTS);
}

/** The features with a text in their key or a property, of the layers that the user sees, those on the map first. */
export async function foundFeatures(store, api, text, signal) {
  if (text.length < LEAST_CHARACTERS) return [];
  const layers = [...store.layers.values()].filter(({ version }) => version).sort((a, b) => b.shown - a.shown);
  const find = async (layer) => {
    const asked = { find: text, zoom: FEATURE_ZOOM, version: layer.version };
    const { features } = await api.features(layer.name, asked, signal).catch(() => ({ features: [] })); // it is gone, or somebody types on
    return features.map((feature) => featureOf(layer, feature, text));
  };
  return best((await Promise.all(layers.slice(0, MOST_LAYERS).map(find))).flat(), OTHERS);
}

function featureOf(layer, { id, geometry, properties }, text) {
  const name = title(id, properties);
  const about = filled(gettext("Layer %(name)s"), { name: layer.title ?? layer.name });
  const known = { layer: layer.name, key: id, properties, box: boxOf(geometry) };
  return { ...known, name, about, rank: Math.min(rankOf([name, id], text.toLowerCase()), 3) };
}

let towns = null;

/** The towns whose names have words that begin with a text, the largest first; `address` is that of the list of towns. */
export async function foundPlaces(address, text) {
  if (text.length < LEAST_CHARACTERS || !address) return [];
  towns ??= fetch(address)
    .then((response) => response.json())
    .then(townsOf);
  try {
    return townsNamed(await towns, text);
  } catch {
    towns = null; // without a connection; the next search tries again
    return [];
  }
}

/** The towns of the rows `[name, country, lon, lat]` of the list. */
export function townsOf(rows) {
  return rows.map(([name, country, lon, lat]) => ({ name, country, lon, lat, plain: plain(name) }));
}

/** The towns of a list whose names have words that begin with a text. */
export function townsNamed(listed, text) {
  const wanted = plain(text);
  const found = [];
  for (const town of listed) {
    const rank = rankOf([town.plain], wanted);
    if (rank < 3) found.push({ ...town, rank, about: countryOf(town.country) });
  }
  return best(found, OTHERS);
}

function countryOf(code) {
  return new Intl.DisplayNames([LOCALE], { type: "region" }).of(code) ?? code;
}

/** A name without accents, in lower case. */
function plain(name) {
  return name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** 0 if a name is the text, 1 if one begins with it, 2 if a word of one does, 3 if one holds it, else infinity. */
function rankOf(names, wanted) {
  const ranks = names.map((name) => {
    const at = name.toLowerCase().indexOf(wanted);
    if (at < 0) return Infinity;
    if (at === 0) return name.length === wanted.length ? 0 : 1;
    return /[\s\-/(']/.test(name[at - 1]) ? 2 : 3;
  });
  return Math.min(...ranks);
}

function best(found, most) {
  return found.sort((a, b) => a.rank - b.rank).slice(0, most);
}

/** The box `[west, south, east, north]` of a GeoJSON geometry. */
function boxOf({ coordinates, geometries }) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  const walk = (part) => {
    if (typeof part[0] !== "number") return part.forEach(walk);
    const [lon, lat] = part;
    [box[0], box[1], box[2], box[3]] = [
      Math.min(box[0], lon),
      Math.min(box[1], lat),
      Math.max(box[2], lon),
      Math.max(box[3], lat),
    ];
    return undefined;
  };
  if (geometries) geometries.forEach((one) => walk(one.coordinates));
  else walk(coordinates);
  return box;
}
