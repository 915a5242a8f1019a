// What is known of the selected feature of a layer.

import { $, setText } from "./dom.js";
import { properties, title } from "./format.js";
import { fill } from "./object-panel.js";

/** @param {object} store whose `selectedFeature` is shown */
export function createFeaturePanel(store) {
  const refresh = () => {
    const { selectedFeature: feature } = store;
    $("feature-panel").hidden = !feature;
    if (!feature) return;
    setText($("feature-title"), title(feature.key, feature.properties));
    setText($("feature-kind"), `${store.layers.get(feature.layer)?.title ?? feature.layer} \u00b7 ${feature.key}`);
    fill($("feature-properties"), properties(feature.properties));
  };
  $("feature-close").addEventListener("click", () => store.selectFeature(null));
  store.on("selection layers", refresh);
}
