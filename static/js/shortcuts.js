// Keyboard shortcuts, and the overlay that lists them.

import { $, h } from "./dom.js";
import { gettext } from "./i18n.js";
import { createUndo } from "./map/undo.js";

/** @param {Array} shortcuts `{key, text, run}`; keys are ignored while typing */
export function createShortcuts(shortcuts) {
  const dialog = $("help");
  const toggle = () => (dialog.open ? dialog.close() : dialog.showModal());
  const all = [...shortcuts, { key: "?", text: gettext("This help"), run: toggle }];
  const undo = { key: "Ctrl+Z", text: gettext("Take the last change of a shape back") };
  createUndo();
  $("shortcut-list").append(
    ...[...all, undo].flatMap(({ key, text }) => [
      h("dt", {}, h("kbd", {}, key === "Escape" ? "Esc" : key)),
      h("dd", {}, text),
    ]),
  );
  $("help-button").addEventListener("click", toggle);
  $("help-close").addEventListener("click", toggle);
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  window.addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input:not([type=checkbox]):not([type=radio]), select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    if (document.querySelector("dialog[open]") && !(dialog.open && event.key === "?")) return; // a dialog has keys of its own
    const shortcut = all.find(({ key }) => key === event.key || key === event.key.toLowerCase());
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run();
  });
}
