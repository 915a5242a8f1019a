// The choice of units, which the browser remembers.

import { $, h, setText } from "./dom.js";
import { recall, remember } from "./remembered.js";
import { chooseUnits, SYSTEMS, units, unitsName } from "./units.js";

const NAME = "units";

/** Take over the units that the browser remembers. */
export function recallUnits() {
  chooseUnits(recall(NAME));
}

/** @param {function} onChange called after other units were chosen */
export function createUnitsControl(onChange) {
  const show = () => setText($("units-hint"), `Figures are in ${units().hint}. Filters and thresholds keep the units of the feed.`);
  const choose = ({ target }) => {
    chooseUnits(target.value);
    remember(NAME, unitsName());
    show();
    onChange();
  };
  $("units").append(...Object.entries(SYSTEMS).map(([name, { title }]) =>
    h("label", {}, h("input", { type: "radio", name: "units", value: name, checked: name === unitsName(), onchange: choose }), h("span", {}, title))));
  show();
}
