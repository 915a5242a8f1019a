// The menu of queries around an object or a place: a right click, a long press, a button or a key opens it.

import { $, h, icon, setText } from "../dom.js";
import { length } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { onEscape } from "../page-events.js";
import { ABOUT } from "../kinds/about.js";
import { units } from "../units.js";

const TEXTS = {
  watch: (here) =>
    filled(here ? gettext("Watch %(distance)s around here") : gettext("Watch %(distance)s around it"), {
      distance: length(units().radiusM),
    }),
  nearest: (here) => (here ? gettext("10 nearest to here") : gettext("10 nearest")),
  count: (here) => (here ? gettext("Count around here") : gettext("Count around it")),
};

export class AroundMenu {
  onPick;
  onMore;
  titleOf;

  /**
   * @param {Record<string, any>} parts `onPick(about, target)`, called with an entry of `ABOUT`; `onMore(target)`, which opens such a query
   *   in the form; `titleOf(stream)`; a target is `{stream, focus, name, it}`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.menu = $("around-menu");
    this.items = ABOUT.map((about) => this.#item(about.icon, about.action, () => this.onPick(about, this.target)));
    this.items.push(this.#item("edit", "more", () => this.onMore(this.target)));
    $("around-items").append(...this.items);
    this.menu.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("pointerdown", ({ target }) => !this.menu.contains(target) && this.close(false));
    window.addEventListener("blur", () => this.close(false));
    onEscape("menu", () => this.close());
  }

  get open() {
    return !this.menu.hidden;
  }

  /** Open the menu for a target, at a point of the window. When it closes, the focus goes back to the element that had it. */
  show(target, { x, y }) {
    this.target = target;
    this.opener = document.activeElement;
    setText($("around-title"), target.focus.at ? `${this.titleOf(target.stream)}, ${target.name}` : target.name);
    for (const item of this.items)
      setText(item.lastChild, TEXTS[item.dataset.action]?.(target.it === "here") ?? gettext("Another query\u2026"));
    this.menu.hidden = false;
    const { offsetWidth, offsetHeight } = this.menu;
    this.menu.style.left = `${Math.max(8, Math.min(x, innerWidth - offsetWidth - 8))}px`;
    this.menu.style.top = `${Math.max(8, Math.min(y, innerHeight - offsetHeight - 8))}px`;
    this.items[0].focus({ preventScroll: true });
  }

  close(focus = true) {
    if (!this.open) return false;
    this.menu.hidden = true;
    if (focus) this.opener?.focus({ preventScroll: true });
    return true;
  }

  #item(symbol, action, run) {
    const button = h(
      "button",
      { type: "button", class: "quiet", role: "menuitem", tabindex: "-1", "data-action": action },
      icon(symbol),
      h("span"),
    );
    button.addEventListener("click", () => {
      this.close();
      run();
    });
    return button;
  }

  #key(event) {
    const at = this.items.indexOf(document.activeElement);
    const last = this.items.length - 1;
    const next = { ArrowDown: at === last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last }[
      event.key
    ];
    if (next !== undefined) this.items[next].focus();
    else if (event.key === "Escape" || event.key === "Tab") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
