// Saves what was dragged of a query on the map, and offers to take it back.

import { filled, gettext } from "../i18n.js";
import { renamed } from "../kinds/about.js";
import { toast } from "../toasts.js";

/** Return a function of a query and its new plan, given `ask(message)`, which returns the reply, or null after an error. */
export function reshaping(ask) {
  return async ({ query, name, plan: before }, plan) => {
    const edit = { type: "query.edit", query };
    const made = await ask({ ...edit, plan, name: renamed(name, before, plan) });
    const undo = { text: gettext("Undo"), run: () => ask({ ...edit, plan: before, name }) };
    if (made) toast(filled(gettext("Changed \u201c%(name)s\u201d."), { name }), "info", undo);
  };
}
