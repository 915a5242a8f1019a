// A question that is answered by yes or no.

import { $, setText } from "./dom.js";
import { gettext } from "./i18n.js";

/** Ask the user before an action that cannot be undone, or costs much. Return a promise of true or false. */
export function confirmed(question, yes, no = gettext("Keep")) {
  const dialog = $("confirm");
  setText($("confirm-question"), question);
  setText($("confirm-yes"), yes);
  setText($("confirm-no"), no);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }),
  );
}
