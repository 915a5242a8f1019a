// The base maps that operators add: tiles of a server, a WMS, and files of images or vectors on this site.

import { gettext, LOCALE } from "../i18n.js";

/** Leaflet's options of a base map, as the page describes it. */
export function optionsOf(
  /** @type {Record<string, any>} */ {
    kind,
    layers,
    credit,
    attribution = "",
    min_zoom: minZoom,
    max_zoom: maxNativeZoom,
  },
) {
  const shared = { attribution: credit ?? escaped(attribution), minZoom, maxNativeZoom, maxZoom: 24 };
  return kind === "wms" ? { ...shared, layers, format: "image/png", transparent: true } : shared;
}

/** Return whether the built-in map shows below a base map: a file may hold only a town, and below a least zoom there are no tiles. */
export function needsGround({ kind, min_zoom: minZoom }) {
  return kind !== "xyz" || minZoom > 0;
}

/** Return the number of the base map to begin with: the one that was chosen last, or else the default, or else the built-in one. */
export function firstOf(names, maps, remembered) {
  const last = names.indexOf(remembered);
  if (last >= 0) return last;
  return Math.max(0, names.indexOf(maps.find((base) => base.default)?.name));
}

/**
 * Return a promise of the layer of a base map. It is a promise since vectors need a library, loaded when they are first shown.
 *
 * @param {Record<string, any>} L Leaflet
 * @param {Record<string, any>} base as the page describes it
 * @param {Record<string, any>} parts `vectorsUrl`, the address of protomaps-leaflet; `dark`, whether the theme is dark
 */
export async function layerOf(L, base, { vectorsUrl, dark }) {
  const options = optionsOf(base);
  if (base.kind === "wms") return L.tileLayer.wms(base.url, options);
  if (base.format !== "mvt") return L.tileLayer(base.url, options);
  const { leafletLayer } = await vectors(vectorsUrl);
  const { maxNativeZoom: maxDataZoom, attribution } = options;
  return leafletLayer({
    url: base.url,
    maxDataZoom,
    attribution,
    flavor: dark ? "dark" : "light",
    lang: LOCALE.slice(0, 2),
  });
}

let loading = null;

function vectors(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.protomapsL);
    script.onerror = () => reject(new Error(gettext("The map could not be loaded. Try again in a moment.")));
    document.head.append(script);
  });
  return loading;
}

function escaped(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
