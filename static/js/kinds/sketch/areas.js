// The areas about which a sketch is asked: drawn rectangles, a drawn polygon, the view, or the area of a query.

import { normalisedBox, rectangleOf, roundedBox, turnTowards } from "../../geometry.js";
import { $ } from "../../dom.js";
import { pageEvents } from "../../page-events.js";
import { boxOf } from "../plan.js";

export class SketchAreas {
  L;
  map;
  store;
  editor;
  polygons;
  view;
  colour;
  onChange;
  clip;
  tab;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `store`; `editor`, a RectangleEditor; `polygons`, a FeatureEditor; `view()`; `colour()`; `onChange()`;
   *   `clip(box)`, by default into the bounds of the space; `tab`, of the panel, by default that of
   *   statistics: while another one is shown, the areas are not
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map, clip: inWorld, tab: "statistics" }, parts);
    this.rectangles = { here: null, other: null };
    this.ring = null; // the polygon, without the repeated first vertex
    this.editors = Object.fromEntries(
      ["here", "other"].map((name) => [
        name,
        this.editor.sharedBy((rectangle) => {
          this.rectangles[name] = rectangle;
          this.onChange();
        }),
      ]),
    );
    this.outlines = L.layerGroup().addTo(map);
    this.pane = `areas-of-${this.tab}`;
    map.createPane(this.pane).dataset.of = this.tab;
    $("panel").addEventListener("tab", () => document.body.dataset.tab !== this.tab && this.stop());
    pageEvents.on("theme units", () => this.show(this.shown));
  }

  get drawing() {
    return this.polygons.active;
  }

  /** Let the user draw: "here" or "other" a rectangle, or "polygon". What is drawn already is edited. */
  draw(name, anew = false) {
    this.stop();
    if (name === "polygon") {
      if (anew || !this.ring || !this.polygons.edit({ type: "Polygon", coordinates: [closed(this.ring)] }))
        this.polygons.draw("Polygon");
    } else if (anew || !this.rectangles[name]) this.editors[name].draw();
    else this.editors[name].edit(this.rectangles[name]);
  }

  /** Take over the polygon after a step of its drawing. */
  follow() {
    const drawn = this.polygons.geometry();
    if (!drawn) return;
    this.ring = drawn.coordinates[0].slice(0, -1).map(([lon, lat]) => [rounded(lon), rounded(lat)]);
    this.onChange();
  }

  stop() {
    for (const editor of Object.values(this.editors)) editor.stop();
    this.polygons.stop();
  }

  /** Return where a plan asks: `{area}`, `{polygon}`, `{}` for everywhere; null if nothing is drawn or chosen yet. */
  place(where, query) {
    if (where === "everywhere") return {};
    if (where === "polygon") return this.ring && { polygon: this.ring };
    if (where === "query") return placeOf(this.store.queries.get(query)?.plan, this.clip);
    const rectangle = where === "view" ? this.view() : this.rectangles.here;
    return rectangle && { area: roundedBox(this.clip(normalisedBox(rectangle))) };
  }

  /** Return the other rectangle as a place; null if it is not drawn. */
  other() {
    return this.rectangles.other && { area: roundedBox(inWorld(normalisedBox(this.rectangles.other))) };
  }

  /** Show the places of a plan on the map; null for none. */
  show(plan) {
    this.outlines.clearLayers();
    this.shown = plan;
    for (const [place, dashes] of [
      [plan, null],
      [plan?.other, "6 5"],
    ]) {
      const ring = place?.polygon ?? (place?.area && cornersOf(place.area));
      if (!ring) continue;
      const turn = turnTowards(ring[0][0], this.map.getCenter().lng);
      const style = {
        color: this.colour(),
        weight: 2,
        fill: false,
        dashArray: dashes,
        interactive: false,
        pane: this.pane,
      };
      this.L.polygon(
        ring.map(([lon, lat]) => [lat, lon + turn]),
        style,
      ).addTo(this.outlines);
    }
  }
}

/** Return the place of a query's plan; null without an area. */
function placeOf(plan, clip) {
  if (plan?.polygon) return { polygon: plan.polygon };
  const box = boxOf(plan);
  return box && { area: clip({ lo: box.lo.slice(0, 2), hi: box.hi.slice(0, 2) }) };
}

/** Cells lie within the bounds of the space: a box that goes on behind the antimeridian takes all longitudes. */
function inWorld({ lo, hi }) {
  return hi[0] > 180 ? { lo: [-180, lo[1]], hi: [180, hi[1]] } : { lo, hi };
}

function cornersOf(area) {
  const { west, south, east, north } = rectangleOf(area, 0);
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
  ];
}

function closed(ring) {
  return [...ring, ring[0]];
}

function rounded(degrees) {
  return Math.round(degrees * 1e5) / 1e5;
}
