// A question that is answered by yes or no.

import { $, setText } from "./dom.js";

/** Ask the user before an action that cannot be undone. Return a promise of true or false. */
export function confirmed(question, yes) {
  const dialog = $("confirm");
  setText($("confirm-question"), question);
  setText($("confirm-yes"), yes);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }),
  );
}
