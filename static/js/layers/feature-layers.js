// Draws the features of the shown layers on one canvas below the objects. They are fetched for the view, in the detail of its zoom.

import { coalesced, setText } from "../dom.js";
import { countStyle, featureRank, featureStyle, largestCounts, pairedCounts, turnOf, viewOf } from "./features.js";
import { count } from "../format.js";
import { DASHES } from "../looks.js";
import { pageEvents } from "../page-events.js";

const HIT_PX = 5;
const RESTYLE_MS = 250;
const POINT_PX = 5;
const MOST_LABELS = 100; // of a layer: more would hide the map

export class FeatureLayers {
  L;
  map;
  store;
  api;
  palette;
  onError;
  onDrawn;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `store`; `api`, a LayersApi; `palette()`; `onError(message)`; `onDrawn()`
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map }, parts);
    this.drawn = new Map(); // layer -> {version, view, items}
    this.hovered = null;
    this.edited = null; // {layer, key} of the feature that an editor shows instead
    this.labels = new Map(); // layer -> key -> marker with the feature's count, for layers that are coloured by count
    map.createPane("features").style.zIndex = 350;
    map.createPane("counts").style.zIndex = 455; // above the objects, which crowd where counts are large
    this.renderer = L.canvas({ pane: "features", padding: 0.25, tolerance: HIT_PX });
    map.on("moveend", () => this.refresh());
    this.store.on("layers", () => this.refresh());
    this.store.on("selection", () => this.restyle());
    pageEvents.on("theme", () => this.restyle());
    this.store.on(
      "pairs",
      coalesced(() => this.restyle(), RESTYLE_MS),
    );
  }

  /** Fetch the features that the view and the layers' versions need, and remove the layers that are not shown any more. */
  refresh() {
    const shown = [...this.store.layers.values()].filter((layer) => layer.shown && layer.version !== null);
    const names = new Set(shown.map(({ name }) => name));
    for (const name of this.drawn.keys()) if (!names.has(name)) this.#forget(name);
    for (const layer of shown) this.#update(layer);
    for (const name of this.drawn.keys()) this.#label(name);
  }

  /** Return the feature under a point of the map's container, `{layer, key, properties}`; points come before lines, lines before areas. */
  hit(containerPoint) {
    const point = this.map.containerPointToLayerPoint(containerPoint);
    let best;
    for (const [layer, { items }] of this.drawn) {
      for (let i = items.length - 1; i >= 0; i--) {
        if (best && items[i].rank <= best.rank) break;
        if (items[i].paths.some((path) => path._pxBounds && path._containsPoint(point))) {
          best = { layer, key: items[i].key, properties: items[i].properties, rank: items[i].rank };
        }
      }
    }
    return best;
  }

  /** Light up the feature under the pointer, or none. */
  hover(found) {
    if (same(this.hovered, found)) return;
    const before = this.hovered;
    this.hovered = found ?? null;
    for (const one of [before, found]) if (one) this.#restyle(one.layer, one.key);
  }

  /** Leave out the feature that is being edited; null for none. */
  hide(feature) {
    const before = this.edited;
    this.edited = feature;
    for (const one of [before, feature]) if (one) this.#restyle(one.layer, one.key);
  }

  /** Draw everything again in the present colours. */
  restyle() {
    for (const name of this.drawn.keys()) {
      this.#restyle(name);
      this.#label(name);
    }
  }

  #restyle(name, key) {
    const paired = this.#paired(name);
    for (const item of this.drawn.get(name)?.items ?? []) {
      if (key !== undefined && item.key !== key) continue;
      const style = this.#style(name, item, paired);
      const text = JSON.stringify(style);
      if (text === item.style) continue;
      item.style = text;
      for (const path of item.paths) path.setStyle(style);
    }
  }

  /** Write the largest counts onto the features of a layer that is coloured by count. */
  #label(name) {
    const largest = this.store.layers.get(name)?.byCount ? largestCounts(this.store.joinsOf(name), MOST_LABELS) : [];
    const wanted = new Map(/** @type {[string, number][]} */ (largest));
    const markers = this.labels.get(name) ?? new Map();
    this.labels.set(name, markers);
    const items = new Map(
      (this.drawn.get(name)?.items ?? []).filter(({ key }) => wanted.has(key)).map((item) => [item.key, item]),
    );
    for (const [key, marker] of markers) {
      if (items.get(key) === marker.item) continue;
      marker.remove();
      markers.delete(key);
    }
    for (const [key, item] of items) {
      if (!markers.has(key)) markers.set(key, this.#marker(item));
      setText(markers.get(key).getElement().firstChild, count(wanted.get(key)));
    }
  }

  #marker(item) {
    const icon = this.L.divIcon({ className: "count-label", html: "<span></span>", iconSize: [0, 0] });
    const [path] = item.paths;
    const marker = this.L.marker(path.getLatLng?.() ?? path.getCenter(), {
      icon,
      pane: "counts",
      interactive: false,
      keyboard: false,
    });
    marker.item = item;
    return marker.addTo(this.map);
  }

  #paired(name) {
    const joins = this.store.joinsOf(name);
    return { joins, ...pairedCounts(joins) };
  }

  #style(name, { key, rank }, paired) {
    const layer = this.store.layers.get(name);
    const is = (one) => one?.layer === name && one.key === key;
    const colours = this.palette();
    const partOf = paired.joins.find(({ counts }) => counts.has(key));
    const style = featureStyle({
      rank,
      colour: colours.layers[layer?.colour ?? 0],
      accent: colours.accent,
      hovered: is(this.hovered),
      selected: is(this.store.selectedFeature),
      hidden: is(this.edited),
      paired: partOf ? colours.queries[partOf.query.colour] : null,
    });
    const plain = !is(this.hovered) && !is(this.store.selectedFeature);
    const dashArray = rank === 2 ? null : DASHES[layer?.line ?? 0]; // a point has none
    if (!layer?.byCount || !plain) return { ...style, dashArray };
    return {
      ...style,
      dashArray,
      ...countStyle(rank, paired.most > 0 ? paired.of(key) / paired.most : 0, colours.count),
    };
  }

  async #update(layer) {
    const entry = this.drawn.get(layer.name) ?? { items: [] };
    this.drawn.set(layer.name, entry);
    const bounds = this.map.getBounds();
    const sides = {
      west: bounds.getWest(),
      south: bounds.getSouth(),
      east: bounds.getEast(),
      north: bounds.getNorth(),
    };
    const view = viewOf(sides, this.map.getZoom(), layer.version);
    if (entry.asked?.serves(view)) return;
    entry.asked = view;
    entry.abort?.abort();
    entry.abort = new AbortController();
    const asked = { version: layer.version, bbox: view.bbox.join(), zoom: view.zoom };
    try {
      const answer = await this.api.features(layer.name, asked, entry.abort.signal);
      if (this.drawn.get(layer.name) !== entry) return;
      view.truncated = answer.truncated;
      this.#draw(layer.name, entry, answer.features);
      this.store.truncateLayer(layer.name, answer.truncated);
    } catch (error) {
      if (error.name === "AbortError") return;
      entry.asked = null; // to be asked for again after the next move
      if (error.status !== 404) this.onError(error.message); // 404: this version is gone; the next `layer.status` tells
    }
  }

  #draw(name, entry, features) {
    const center = this.map.getCenter().lng;
    const paired = this.#paired(name);
    for (const { paths } of entry.items) for (const path of paths) path.remove();
    entry.items = features
      .filter(({ geometry }) => geometry)
      .map((feature) => ({
        key: feature.id,
        properties: feature.properties ?? {},
        rank: featureRank(feature.geometry),
        feature,
      }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ feature, ...item }) => this.#item(name, item, feature, { center, paired }));
    this.#label(name);
    this.onDrawn();
  }

  #item(name, item, feature, { center, paired }) {
    const { L } = this;
    const turn = turnOf(feature.geometry, center);
    const style = this.#style(name, item, paired);
    const options = { ...style, renderer: this.renderer, pane: "features", interactive: false };
    const shape = L.GeoJSON.geometryToLayer(feature, {
      ...options,
      coordsToLatLng: ([lon, lat]) => L.latLng(lat, lon + turn),
      pointToLayer: (_, place) => L.circleMarker(place, { ...options, radius: POINT_PX }),
    });
    const paths = [];
    const take = (layer) => (layer.eachLayer ? layer.eachLayer(take) : paths.push(layer));
    take(shape);
    for (const path of paths) path.setStyle(options).addTo(this.map);
    return { ...item, paths, style: JSON.stringify(style) };
  }

  #forget(name) {
    const { items, abort } = this.drawn.get(name);
    abort?.abort();
    for (const { paths } of items) for (const path of paths) path.remove();
    this.drawn.delete(name);
    this.#label(name);
  }
}

function same(a, b) {
  return (a ?? null) === (b ?? null) || (a && b && a.layer === b.layer && a.key === b.key);
}
