// The examples of the demonstration: a button below the queries removes them from this user's list, and their layer from the map.

import { $, coalesced } from "../dom.js";
import { gettext } from "../i18n.js";
import { toast } from "../toasts.js";

const REFRESH_MS = 200;

/** @param {(...values: any[]) => any} show called with whether the user sees the examples; returns a promise of the reply, or of null after an error */
export function createExamples(store, show) {
  const examples = () => [...store.queries.values()].filter(({ example }) => example);
  const layers = () =>
    examples()
      .map(({ plan }) => plan.join?.layer)
      .filter(Boolean);
  const render = () => {
    $("examples-note").hidden = examples().length === 0;
    for (const layer of layers()) if (!store.looks.has(layer)) store.showLayer(layer, true); // unless this browser remembers it
  };
  const remove = async () => {
    const joined = layers();
    const showAll = async (shown) => {
      const done = await show(shown);
      if (done) for (const layer of joined) store.showLayer(layer, shown);
      return done;
    };
    if (await showAll(false))
      toast(gettext("The examples are removed."), "info", { text: gettext("Undo"), run: () => showAll(true) });
  };
  $("examples-remove").addEventListener("click", remove);
  store.on("queries layers", coalesced(render, REFRESH_MS));
  render();
}
