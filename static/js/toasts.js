// Short messages that need no answer.

import { $, h } from "./dom.js";
import { gettext } from "./i18n.js";

const SHOWN_MS = { info: 3500, watch: 8000, error: 9000 };

/**
 * Show a message; errors stay longer, and are announced at once to screen readers.
 *
 * @param {string} text
 * @param {string} kind
 * @param {Record<string, any> | null} action `text` and `run()` of a button; a message with a button stays longer
 */
export function toast(text, kind = "info", action = null) {
  const close = h(
    "button",
    { class: "quiet icon", type: "button", "aria-label": gettext("Dismiss"), onclick: () => box.remove() },
    "\u00d7",
  );
  const act = () => {
    box.remove();
    action.run();
  };
  const button = action && h("button", { class: "small", type: "button", onclick: act }, action.text);
  const box = h(
    "div",
    { class: `toast ${kind}`, role: kind === "error" ? "alert" : "status" },
    h("p", {}, text),
    button,
    close,
  );
  for (const old of $("toasts").children) if (old.firstChild.textContent === text) old.remove();
  $("toasts").append(box);
  setTimeout(() => box.remove(), action ? SHOWN_MS.error : SHOWN_MS[kind]);
}

/** Wait for a promise, then show `done`, if it is given; show an error as a toast. */
export async function tried(promise, done) {
  try {
    await promise;
    if (done) toast(done);
  } catch (error) {
    toast(error.message, "error");
  }
}
