// The display filter on the map: a field for it, how many objects it leaves, and a button that removes it.

import { $, setText } from "../dom.js";
import { FilterField } from "../queries/filter-field.js";
import { plainly } from "../queries/filter-words.js";
import { shownFilter } from "../queries/filter-units.js";
import { count } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { onEscape } from "../page-events.js";
import { FilterError } from "./cql2.js";
import { checked } from "./display-filter.js";

const COUNT_MS = 1000;

/**
 * @param {Record<string, any>} parts `store`; `filter`, a DisplayFilter; `shown(stream)`; `onChange()`, called when another filter holds
 * @returns {Record<string, any>} `toggle()`; `text()`; `set(text)`, which throws a FilterError
 */
export function createDisplayFilter({ store, filter, shown, onChange }) {
  const ids = ["display-filter", "display-filter-text", "display-filter-error", "open-filter", "display-filter-note"];
  const [form, input, error, button, note] = ids.map($);
  const texts = () =>
    [...store.objects.byStream.keys()].filter(shown).flatMap((stream) => store.objects.textsOf(stream));
  const field = new FilterField({
    input,
    list: $("display-filter-choices"),
    offered: $("display-filter-offered"),
    line: $("display-filter-check"),
    texts,
    check: async ({ where }) => checked(where, texts()),
  });
  const open = (on) => {
    form.hidden = !on;
    button.setAttribute("aria-expanded", String(on));
    if (on) {
      field.start();
      input.focus();
    }
  };
  const tell = () => {
    note.hidden = !filter.active;
    button.setAttribute("aria-pressed", String(filter.active));
    if (!filter.active) return;
    const { shown: some, of } = filter.count(shown);
    setText(
      $("display-filter-count"),
      filled(gettext("%(shown)s of %(of)s shown"), { shown: count(some), of: count(of) }),
    );
    note.title = shownFilter(filter.text);
  };
  const set = (text) => {
    filter.set(text);
    if (document.activeElement !== input) field.typed.show(filter.text);
    say("");
    tell();
    onChange();
  };
  const say = (words) => {
    error.hidden = !words;
    setText(error, words);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      set(field.typed.read());
      open(false);
      button.focus();
    } catch (wrong) {
      if (!(wrong instanceof FilterError)) throw wrong;
      say(plainly(wrong.message));
      input.focus();
    }
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.defaultPrevented) return; // the list of choices takes it first
    event.preventDefault();
    form.requestSubmit();
  });
  const remove = () => {
    field.typed.show("");
    set("");
    button.focus();
  };
  button.addEventListener("click", () => open(form.hidden));
  $("display-filter-remove").addEventListener("click", remove);
  const close = () => {
    if (form.hidden) return false;
    field.typed.show(filter.text);
    say("");
    open(false);
    button.focus();
    return true;
  };
  $("display-filter-cancel").addEventListener("click", close);
  onEscape("filter", close);
  setInterval(tell, COUNT_MS);
  return { toggle: () => open(form.hidden), text: () => filter.text, set };
}
