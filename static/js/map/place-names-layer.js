// Writes the names of seas and towns onto the map without internet, below everything that is on it.

import { turnTowards } from "../geometry.js";
import { LOCALE } from "../i18n.js";
import { namesIn } from "./place-names.js";

const FROM_ZOOM = 3; // before it, the map has no room for names
const BEYOND = 0.25; // of the view, on each side, has names, too: they come into view while the user drags
const DOT_PX = 1.8;
const TEXT_PX = 6; // from a dot to its name

/**
 * Make the layer.
 *
 * @param {Record<string, any>} L Leaflet
 * @param {Record<string, any>} urls `seas` and `places`, the lists of names
 * @param {(...values: any[]) => any} palette returning `{sea, land, seaName, placeName}`
 */
export function createPlaceNames(L, urls, palette) {
  const Layer = L.Layer.extend({
    onAdd(map) {
      this.canvas ??= L.DomUtil.create("canvas", "place-names leaflet-zoom-hide");
      const pane = map.getPane("place-names") ?? map.createPane("place-names");
      pane.style.zIndex = 210; // between the tiles and all that is drawn over them
      pane.style.pointerEvents = "none";
      pane.append(this.canvas);
      this.redraw();
    },

    onRemove() {
      this.canvas.remove();
    },

    getEvents() {
      return { moveend: this.redraw, resize: this.redraw };
    },

    async redraw() {
      if (!this._map) return;
      const few = this._map.getZoom() < FROM_ZOOM;
      const lists = few ? NONE : await listsOf(urls).catch(() => NONE); // without a connection, the next move tries again
      if (this._map) draw(L, this._map, this.canvas, lists, palette());
    },
  });
  return new Layer();
}

const NONE = { seas: [], towns: [] };
let loading = null;

/** Load the lists once; after a failure, the next call loads them again. */
function listsOf(urls) {
  const load = async (/** @type {string} */ url) => (await fetch(url)).json();
  loading ??= Promise.all([load(urls.seas), load(urls.places)]).then(([seas, towns]) => ({ seas, towns }));
  loading.catch(() => (loading = null));
  return loading;
}

function draw(L, map, canvas, lists, colours) {
  const size = map.getSize();
  const [left, top] = [Math.round(size.x * BEYOND), Math.round(size.y * BEYOND)];
  const [width, height] = [size.x + 2 * left, size.y + 2 * top];
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  L.DomUtil.setPosition(canvas, map.containerPointToLayerPoint([-left, -top]));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const middle = map.getCenter().lng;
  const { fontFamily } = getComputedStyle(map.getContainer());
  const font = ({ sea, large }) =>
    sea ? `italic ${large ? 14 : 12.5}px ${fontFamily}` : `${large ? "600 12.5" : 11.5}px ${fontFamily}`;
  const [southWest, northEast] = [
    [-left, height - top],
    [width - left, -top],
  ].map((corner) => map.containerPointToLatLng(corner));
  const names = namesIn(lists, {
    zoom: Math.floor(map.getZoom()),
    width,
    height,
    bounds: [southWest.lng, southWest.lat, northEast.lng, northEast.lat],
    at: (lon, lat) => {
      const { x, y } = map.latLngToContainerPoint([lat, lon + turnTowards(lon, middle)]);
      return [x + left, y + top];
    },
    german: LOCALE.startsWith("de"),
    measure: (text, how) => {
      context.font = font(how);
      return context.measureText(text).width;
    },
  });
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3;
  for (const name of names) write(context, name, font(name), colours);
}

/** Write a name, with a halo that keeps it readable over coasts; a town has a dot before it. */
function write(context, { name, x, y, sea }, font, { sea: water, land, seaName, placeName }) {
  context.font = font;
  context.textAlign = sea ? "center" : "left";
  context.strokeStyle = sea ? water : land;
  context.fillStyle = sea ? seaName : placeName;
  const from = sea ? x : x + TEXT_PX;
  context.strokeText(name, from, y);
  context.fillText(name, from, y);
  if (sea) return;
  context.beginPath();
  context.arc(x, y, DOT_PX, 0, 2 * Math.PI);
  context.fill();
}
