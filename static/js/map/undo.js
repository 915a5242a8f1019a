// Takes back what was done to shapes on the map, step by step: by Ctrl+Z, or by the button on the map.

import { $ } from "../dom.js";

const MOST = 200;
const TYPED = "input:not([type=checkbox]):not([type=radio]), select, textarea";
const steps = [];
let show = () => {};

/** Remember how a step is taken back; `owner` is the editor that made it. */
export function stepped(owner, back) {
  steps.push({ owner, back });
  if (steps.length > MOST) steps.shift();
  show();
}

/** Forget the steps of an editor whose shape is no longer edited. */
export function forget(owner) {
  const others = steps.filter((step) => step.owner !== owner);
  if (others.length === steps.length) return;
  steps.splice(0, steps.length, ...others);
  show();
}

/** Take the last step back. Return whether there was one. */
function takeBack() {
  const step = steps.pop();
  step?.back();
  show();
  return step !== undefined;
}

/** Show the button while there is a step to take back, and follow the keys. */
export function createUndo() {
  const button = $("undo");
  show = () => (button.hidden = steps.length === 0);
  button.addEventListener("click", takeBack);
  window.addEventListener("keydown", (event) => {
    const asked = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
    if (!asked || event.defaultPrevented) return; // a drawing takes its last corner back
    if (/** @type {Element} */ (event.target).matches?.(TYPED)) return; // and a field what was typed
    if (takeBack()) event.preventDefault();
  });
}
