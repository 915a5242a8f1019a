// The examples of the demonstration: a button below the queries removes them from this user's list.

import { $, coalesced } from "./dom.js";
import { toast } from "./toasts.js";

const REFRESH_MS = 200;

/** @param {function} show of whether the user sees the examples; returns a promise of the server's reply, null where it failed */
export function createExamples(store, show) {
  const render = () => {
    const examples = [...store.queries.values()].filter(({ example }) => example);
    $("examples-note").hidden = examples.length === 0;
    for (const { plan } of examples) showOnce(store, plan.join?.layer);
  };
  const remove = async () => {
    const undo = { text: "Undo", run: () => show(true) };
    if (await show(false)) toast("The examples are removed.", "info", undo);
  };
  $("examples-remove").addEventListener("click", remove);
  store.on("queries layers", coalesced(render, REFRESH_MS));
  render();
}

/** Draw the layer of an example, unless this browser was told before how to show it. */
function showOnce(store, layer) {
  if (layer && !store.looks.has(layer)) store.showLayer(layer, true);
}
