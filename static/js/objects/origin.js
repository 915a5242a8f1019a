// The chip that says that a stream is not live.

import { h, setText } from "../dom.js";
import { gettext } from "../i18n.js";
import { stateText } from "../states.js";

const TITLES = {
  simulated: gettext("Made by the simulator: these objects are not real"),
  recorded: gettext("Replayed from a file"),
};

/** A chip with `update(stream)`; hidden where the stream may be live. */
export function createOrigin() {
  const element = h("span", { class: "origin", hidden: true });
  const update = (stream) => {
    const origin = stream?.origin ?? "";
    element.hidden = !origin;
    setText(element, stateText(origin));
    element.title = TITLES[origin] ?? "";
  };
  return { element, update };
}
