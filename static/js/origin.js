// The chip that says that a stream is not live.

import { h, setText } from "./dom.js";

const TITLES = { simulated: "Made by the simulator: these objects are not real", recorded: "Replayed from a file" };

/** A chip with `update(stream)`; hidden where the stream may be live. */
export function createOrigin() {
  const element = h("span", { class: "origin", hidden: true });
  const update = (stream) => {
    const origin = stream?.origin ?? "";
    element.hidden = !origin;
    setText(element, origin);
    element.title = TITLES[origin] ?? "";
  };
  return { element, update };
}
