// Puts the list of layers together with the form that uploads them, the drawing of features, and queries that join them.

import { confirmed } from "../confirm.js";
import { filled, gettext } from "../i18n.js";
import { begunJoin } from "../kinds/join/plan.js";
import { createLayerList, LayerForm } from "./layer-list.js";
import { onEscape } from "../page-events.js";
import { tried } from "../toasts.js";

/**
 * Create it.
 *
 * @param {Record<string, any>} parts `store`, `api`, `navigation`, `now()`, `mostBytes`; `onOpen()` of the form, `draw(layer, kind)` of a
 *   feature, `start(plan)` of a query
 * @returns {Record<string, any>} `join(name)` begins a query that joins a layer, `refresh()` asks the server for the layers
 */
export function createLayersPage({ store, api, navigation, now, mostBytes, onOpen, draw, start }) {
  const arriving = new Set(); // layers that this page uploaded, while they are being imported

  const join = (name) => {
    store.showLayer(name, true);
    start(begunJoin({ layer: name }));
  };
  const drawOn = (kind) => (layer) => {
    store.showLayer(layer.name, true);
    draw(layer, kind);
  };
  createLayerList(store, {
    show: (layer) => store.showLayer(layer.name, !layer.shown),
    zoom: (layer) => navigation.toLayer(layer),
    drawPoint: drawOn("Point"),
    drawLine: drawOn("LineString"),
    drawPolygon: drawOn("Polygon"),
    count: (layer) => {
      store.showLayer(layer.name, true);
      store.colourByCount(layer.name, !layer.byCount);
    },
    join: (layer) => join(layer.name),
    ...changing(api, tried),
    remove: async (layer) => {
      const name = layer.title;
      const question = gettext(
        "Delete \u201c%(name)s\u201d with all its versions? Queries that join it wait until there is one of its name again. This cannot be undone.",
      );
      if (!(await confirmed(filled(question, { name }), gettext("Delete")))) return;
      await tried(api.remove(layer.name), filled(gettext("Deleted \u201c%(name)s\u201d."), { name }));
    },
  });
  const form = new LayerForm({
    store,
    mostBytes,
    ...sending(api),
    names: () => [...store.layers.keys()],
    onOpen,
    onDone: (layer) => {
      if (!store.layers.has(layer.name)) store.apply({ type: "layer.status", layer }, now());
      arriving.add(layer.name);
    },
  });
  onEscape("layer", () => form.open && (form.close(), true));
  store.on("layers", () => showArrived(arriving, store, navigation));
  return { join, refresh: () => tried(listed(api, store, now)) };
}

/** Return how the form sends a file, and how it has one looked into. */
function sending(api) {
  return {
    upload: (fields, onProgress) => api.upload(fields, onProgress),
    look: (fields, signal) => api.look(fields, signal),
  };
}

async function listed(api, store, now) {
  store.apply({ type: "layers.listed", layers: await api.list() }, now());
}

/** Draw the layers that this page uploaded as soon as they are imported, and fly to them. */
function showArrived(arriving, store, navigation) {
  for (const name of arriving) {
    const layer = store.layers.get(name);
    if (layer?.status === "importing") continue;
    arriving.delete(name);
    if (layer?.status !== "ready") continue;
    store.showLayer(name, true);
    navigation.toLayer(layer);
  }
}

/** Return the actions that only ask the server for a change. */
function changing(api, done) {
  return {
    cancel: (layer) => done(api.cancel(layer.name)),
    look: (layer, look) => done(api.drawAs(layer.name, look)),
    share: (layer, team) => done(api.share(layer.name, team)),
  };
}
