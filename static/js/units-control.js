// The choice of units, which the browser remembers.

import { $, h, setText } from "./dom.js";
import { filled, gettext } from "./i18n.js";
import { recall, remember } from "./remembered.js";
import { chooseUnits, SYSTEMS, units, unitsName } from "./units.js";

const NAME = "units";

/** Take over the units that the browser remembers. */
export function recallUnits() {
  chooseUnits(recall(NAME));
}

/** @param {Record<string, any>} store whose figures are shown in the units that are chosen */
export function createUnitsControl(store) {
  const words = gettext(
    "Figures and forms are in %(units)s. A number in a filter may have its unit: speed_mps > 10 kn.",
  );
  const show = () => setText($("units-hint"), filled(words, { units: units().hint }));
  const choose = ({ target }) => {
    chooseUnits(target.value);
    remember(NAME, unitsName());
    show();
    store.emit("objects", "queries", "figures", "places");
  };
  $("units").append(
    ...Object.entries(SYSTEMS).map(([name, { title }]) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name: "units", value: name, checked: name === unitsName(), onchange: choose }),
        h("span", {}, title),
      ),
    ),
  );
  show();
}
