// Bring what the user picked into view.

import { latitudeOf, longitudeOf, turnTowards } from "../geometry.js";
import { boxOf } from "../kinds/plan.js";

export const OBJECT_ZOOM = 9;
const FEATURE_ZOOM = 13;
const PLACE_ZOOM = 11;

export class Navigation {
  map;
  store;

  /** @param {Record<string, any>} parts `map`, a MonitorMap; `store` */
  constructor({ map, store }) {
    Object.assign(this, { map, store });
  }

  /** What the search does with a feature and with a place that it found. */
  get found() {
    return {
      onFeature: ({ layer, key, properties, box: [west, south, east, north] }) => {
        this.store.showLayer(layer, true);
        this.store.selectFeature({ layer, key, properties });
        if (west === east && south === north) this.map.flyTo(west, south, FEATURE_ZOOM);
        else this.map.fitBox({ lo: [west, south], hi: [east, north] });
      },
      onPlace: ({ lon, lat }) => this.map.flyTo(lon, lat, PLACE_ZOOM),
    };
  }

  /** Select the object in a slot; nothing without one. */
  select(slot) {
    const { streams, keys } = this.store.objects;
    if (slot === undefined) this.store.select(null);
    else this.store.select(streams[slot], keys[slot]);
  }

  /** Fly to the object in a slot. */
  locate(slot) {
    const { x, y } = this.store.objects;
    this.map.flyTo(longitudeOf(x[slot]), latitudeOf(y[slot]), OBJECT_ZOOM);
  }

  /** Select the object in a slot, and fly to it. */
  pick(slot) {
    this.select(slot);
    this.locate(slot);
  }

  /** Select both objects of a told pair or an encounter, given its event, and fly to where they met. */
  toPair(event) {
    this.store.selectPair(event);
    const {
      lon,
      lat,
      partnerPlace: [partnerLon, partnerLat],
    } = event;
    const near = partnerLon + turnTowards(partnerLon, lon);
    this.map.fitBox({
      lo: [Math.min(lon, near), Math.min(lat, partnerLat)],
      hi: [Math.max(lon, near), Math.max(lat, partnerLat)],
    });
  }

  /** Show a layer, and fly to it. */
  toLayer({ name, bounds }) {
    this.store.showLayer(name, true);
    if (!bounds) return;
    const [west, south, east, north] = bounds;
    this.map.fitBox({ lo: [west, south], hi: [east, north] });
  }

  /** Fly to where a query is, to its rectangle, or to the layer that it joins. */
  toQuery({ query, plan }) {
    const bounds = this.map.moving.boundsOf(query);
    if (bounds) return this.map.fitBounds(bounds);
    const box = boxOf(plan);
    const layer = this.store.layers.get(plan.join?.layer);
    if (box) this.map.fitBox(box);
    else if (layer) this.toLayer(layer);
  }
}
