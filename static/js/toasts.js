// Short messages that need no answer.

import { $, h } from "./dom.js";

const SHOWN_MS = { info: 3500, error: 9000 };

/** Show a message; errors stay longer, and are announced at once to screen readers. */
export function toast(text, kind = "info") {
  const close = h("button", { class: "quiet icon", type: "button", "aria-label": "Dismiss", onclick: () => box.remove() }, "\u00d7");
  const box = h("div", { class: `toast ${kind}`, role: kind === "error" ? "alert" : "status" }, h("p", {}, text), close);
  for (const old of $("toasts").children) if (old.firstChild.textContent === text) old.remove();
  $("toasts").append(box);
  setTimeout(() => box.remove(), SHOWN_MS[kind]);
}
