// The grid of the table: a heading, and of the rows only those in view. Rows have one height, and their elements are used again.

import { h, icon } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { aboutColumn, ALTITUDE, HEARD, KEY, LATITUDE, LONGITUDE, NAME, PLACE, STREAM } from "./columns.js";
import { rowAfter, rowsInView, scrolledTo } from "./windowing.js";

const ROW_PX = 28;
const STAR_PX = 40;
const HINT = gettext("A part of the text, or >, <, >=, <=, = or <> and a value");
// What the buttons of the columns do that every object has.
const SORTS = {
  [NAME]: gettext("Sort by name"),
  [KEY]: gettext("Sort by key"),
  [STREAM]: gettext("Sort by stream"),
  [HEARD]: gettext("Sort by last heard"),
  [PLACE]: gettext("Sort by place"),
  [LONGITUDE]: gettext("Sort by longitude"),
  [LATITUDE]: gettext("Sort by latitude"),
  [ALTITUDE]: gettext("Sort by altitude"),
};
const STEP_PX = 120; // by which the left and right arrows scroll

export class Grid {
  element;
  rows;
  watch;
  now;
  selected;
  onSort;
  onCondition;
  onPick;
  onPoint;
  onStar;

  /**
   * @param {HTMLElement} element the grid, which scrolls
   * @param {Record<string, any>} parts `rows`, a Rows; `watch`, a WatchList; `now()`; `selected()`, a slot or undefined; `onSort(name)`;
   *   `onCondition(name, written)`, returning what is wrong with it or ""; `onPick(slot)`; `onPoint(slot)`, undefined for none; `onStar(slot)`
   */
  constructor(element, parts) {
    Object.assign(this, { element, ...parts });
    this.head = element.querySelector(".table-head");
    this.body = element.querySelector(".table-body");
    this.names = [];
    this.pool = []; // elements of rows; that of a row is at its number modulo how many there are
    this.version = 0; // of the values; rows that were written in another one are written again
    this.active = undefined; // slot of the row that the keyboard is at
    this.height = 0;
    element.addEventListener("scroll", () => this.#later());
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () =>
      this.#activate(this.active ?? this.selected() ?? this.rows.slots[this.#topRow()]),
    );
    element.addEventListener("blur", () => this.#point(undefined));
    this.body.addEventListener("pointerover", ({ target }) => this.#point(slotOf(target)));
    this.body.addEventListener("pointerleave", () => this.#point(undefined));
    // Rows may change places while the button is down: the click is for the object on which it went down.
    this.body.addEventListener("pointerdown", ({ target }) => (this.pressed = slotOf(target)));
    this.body.addEventListener("click", ({ target }) => this.#click(target));
    new ResizeObserver(() => {
      this.height = element.clientHeight - this.head.offsetHeight;
      this.#later();
    }).observe(element);
  }

  /** Show columns, given their names. */
  show(names) {
    this.names = names;
    const widths = [STAR_PX, ...names.map((name) => aboutColumn(name).width)];
    this.element.style.setProperty("--columns", widths.map((px) => `${px}px`).join(" "));
    this.element.style.setProperty("--width", `${widths.reduce((sum, px) => sum + px, 0)}px`);
    this.head.replaceChildren(this.#heading());
    this.pool = [];
    this.body.replaceChildren();
    this.sorted();
    this.refresh();
  }

  /** Show by which column the rows are sorted. */
  sorted() {
    const [first] = this.rows.sorts;
    for (const heading of this.head.querySelectorAll("[data-name]")) {
      if (heading.dataset.name !== first.name) heading.removeAttribute("aria-sort");
      else heading.setAttribute("aria-sort", first.descending ? "descending" : "ascending");
    }
  }

  /** Write all rows in view again: their values, or the rows themselves, have changed. */
  refresh() {
    this.version++;
    const { n } = this.rows;
    this.element.setAttribute("aria-rowcount", n + 1);
    this.body.style.height = `${n * ROW_PX}px`;
    this.draw();
  }

  /** Scroll to the row of an object, unless it is in view. */
  reveal(slot) {
    const row = this.rows.rowOf(slot);
    if (row < 0) return;
    this.element.scrollTop = scrolledTo(row, this.#view());
    this.draw();
  }

  draw() {
    const { first, last } = rowsInView({ ...this.#view(), count: this.rows.n });
    while (this.pool.length < last - first) this.#addRow();
    const size = this.pool.length;
    const nowMs = this.now();
    const selected = this.selected();
    for (let row = first; row < last; row++) this.#write(this.pool[row % size], row, selected, nowMs);
    for (const element of this.pool) if (element.row < first || element.row >= last) element.hidden = true;
    this.#markActive();
  }

  #view() {
    return { scrollTop: this.element.scrollTop, height: this.height, rowHeight: ROW_PX };
  }

  #topRow() {
    return Math.min(this.rows.n - 1, Math.ceil(this.element.scrollTop / ROW_PX));
  }

  #later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  #heading() {
    const headings = this.names.map((name) => {
      const { label, unit } = aboutColumn(name);
      const written = this.rows.conditions.get(name) ?? "";
      const sorts = SORTS[name] ?? filled(gettext("Sort by %(name)s"), { name });
      const sort = h(
        "button",
        { type: "button", class: "table-sort quiet", title: sorts, onclick: () => this.onSort(name) },
        h("span", {}, label),
      );
      const input = h("input", {
        type: "text",
        class: "table-only",
        value: written,
        autocomplete: "off",
        spellcheck: "false",
        "aria-label": filled(gettext("Filter %(column)s"), { column: label }),
        placeholder: unit ? `> ${unit}` : gettext("Filter"),
        title: HINT,
      });
      const check = () => {
        const wrong = this.onCondition(name, input.value);
        input.setAttribute("aria-invalid", String(Boolean(wrong)));
        input.title = wrong || HINT;
      };
      input.addEventListener("input", check);
      return h(
        "div",
        { role: "columnheader", class: "table-heading", "data-name": name },
        sort,
        name === PLACE ? null : input,
      );
    });
    const star = h(
      "div",
      { role: "columnheader", class: "table-heading table-stars" },
      h("span", { class: "visually-hidden" }, gettext("Watched")),
      icon("star"),
    );
    return h("div", { role: "row", class: "table-row", "aria-rowindex": 1 }, star, ...headings);
  }

  /** Add an element to the pool; it has the number of its row, and in `at` the slot of its object. All rows get others, since they are found by the size of the pool. */
  #addRow() {
    const cells = this.names.map((name) => h("div", { role: "gridcell", class: "table-cell", "data-name": name }));
    const star = h(
      "button",
      { type: "button", class: "table-star quiet", tabindex: -1, "aria-pressed": "false" },
      icon("star"),
    );
    const row = h(
      "div",
      { role: "row", class: "table-row" },
      h("div", { role: "gridcell", class: "table-cell table-stars" }, star),
      ...cells,
    );
    Object.assign(row, { star, cells, row: -1, at: undefined, id: `table-row-${this.pool.length}` });
    this.pool.push(row);
    this.body.append(row);
    for (const element of this.pool) element.row = -1;
  }

  #write(element, row, selected, nowMs) {
    const slot = this.rows.slots[row];
    const { objects } = this.rows.store;
    if (element.row !== row) {
      element.row = row;
      element.hidden = false;
      element.style.transform = `translateY(${row * ROW_PX}px)`;
      element.setAttribute("aria-rowindex", row + 2);
      element.written = -1;
    }
    if (element.at !== slot) {
      element.at = slot;
      element.written = -1;
    }
    mark(element, "aria-selected", slot === selected);
    if (element.written === this.version) return;
    element.written = this.version;
    const gone = !objects.alive[slot];
    element.classList.toggle("gone", gone);
    if (gone) return; // its last values stay until the rows are collected anew
    const watched = this.watch.has(objects.streams[slot], objects.keys[slot]);
    mark(element.star, "aria-pressed", watched);
    const { columns } = this.rows;
    const name = columns.text(NAME, slot) ?? objects.keys[slot];
    if (element.star.called !== name) {
      element.star.called = name;
      element.star.setAttribute("aria-label", filled(gettext("Watch %(name)s"), { name }));
    }
    this.names.forEach((column, i) => {
      const cell = element.cells[i];
      const text = columns.shown(column, slot, nowMs);
      if (cell.shown === text) return;
      cell.shown = text;
      cell.textContent = text;
      const number = columns.number(column, slot);
      cell.classList.toggle("number", !Number.isNaN(number) && column !== PLACE);
    });
  }

  #point(slot) {
    if (this.pointed === slot) return;
    this.pointed = slot;
    this.onPoint(slot);
  }

  #click(target) {
    const slot = this.pressed ?? slotOf(target);
    this.pressed = undefined;
    if (slot === undefined) return;
    this.#activate(slot);
    if (target.closest(".table-star")) this.onStar(slot);
    else this.onPick(slot);
  }

  #key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || this.rows.n === 0) return;
    const at = this.rows.rowOf(this.active);
    const row = rowAfter(event.key, at < 0 ? this.#topRow() : at, {
      count: this.rows.n,
      page: Math.max(1, Math.floor(this.height / ROW_PX) - 1),
    });
    const slot = this.rows.slots[at < 0 ? this.#topRow() : at];
    if (row !== undefined) {
      this.#activate(this.rows.slots[row]);
      this.reveal(this.active);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
      this.element.scrollLeft += event.key === "ArrowLeft" ? -STEP_PX : STEP_PX;
    else if (event.key === "Enter") this.onPick(slot);
    else if (event.key === " ") this.onStar(slot);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #activate(slot) {
    this.active = slot;
    this.#point(slot);
    this.#markActive();
  }

  /** Tell assistive software which row the keyboard is at, as long as it is in the document. */
  #markActive() {
    let found = null;
    for (const element of this.pool) {
      const active = !element.hidden && element.at === this.active && this.active !== undefined;
      element.classList.toggle("active", active);
      if (active) found = element;
    }
    if (found) this.element.setAttribute("aria-activedescendant", found.id);
    else this.element.removeAttribute("aria-activedescendant");
  }
}

function slotOf(target) {
  return target.closest(".table-row")?.at;
}

/** Set an attribute to true or false, only when it differs. */
function mark(element, name, on) {
  if (element.getAttribute(name) !== String(on)) element.setAttribute(name, String(on));
}
