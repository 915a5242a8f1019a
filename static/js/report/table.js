// The table of a report: it is sorted by a click on a heading, and a row can be picked.

import { h } from "../dom.js";
import { gettext } from "../i18n.js";
import { columnsOf, sorted } from "./questions.js";

const MOST_ROWS = 500;
const TEXTS = ["key", "day", "began", "ended", "lon"];

export class ReportTable {
  element;
  nameOf;
  onPick;
  onDrawn;
  report;

  /** @param {HTMLElement} element the table @param {Record<string, any>} parts `nameOf(key)`; `onPick(row)`; `onDrawn(shown, all)` */
  constructor(element, parts) {
    Object.assign(this, parts, { element, rows: [], report: null, picked: null, column: null, descending: false });
    element.addEventListener("click", ({ target }) => {
      const row = target.closest("tr[data-row]");
      if (row) this.#pick(row);
      const heading = target.closest("button[data-column]");
      if (heading) this.#sort(heading.dataset.column);
    });
  }

  /** Show the rows of a report, in the order in which they come. */
  show(report, rows) {
    Object.assign(this, { report, rows, picked: null, column: null });
    this.draw();
  }

  /** Write the table again, for instance in other units. */
  draw() {
    if (!this.report) return;
    const columns = columnsOf(this.report);
    const shown = this.rows.slice(0, MOST_ROWS);
    const heads = columns.map(([name, title]) =>
      h(
        "th",
        { scope: "col", "aria-sort": this.column === name ? (this.descending ? "descending" : "ascending") : null },
        h("button", { type: "button", class: "quiet", "data-column": name }, title),
      ),
    );
    this.element.replaceChildren(
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...shown.map((row, i) => this.#row(columns, row, i))),
    );
    this.onDrawn(shown.length, this.rows.length);
  }

  #row(columns, row, i) {
    const cells = columns.map(([name, , words]) => {
      const text = words(row[name], row);
      if (name !== "key") return h("td", TEXTS.includes(name) ? {} : { class: "number" }, text);
      const title = this.nameOf(row.key);
      return h(
        "td",
        {},
        h(
          "button",
          { type: "button", class: "quiet", title: gettext("Show the way on the map") },
          title === text ? text : `${title} (${text})`,
        ),
      );
    });
    return h("tr", { "data-row": i, "aria-selected": String(row === this.picked) }, ...cells);
  }

  #pick(element) {
    for (const old of this.element.querySelectorAll("[aria-selected=true]")) old.setAttribute("aria-selected", "false");
    element.setAttribute("aria-selected", "true");
    this.picked = this.rows[Number(element.dataset.row)];
    this.onPick(this.picked);
  }

  /** Sort by a column: numbers and times with the largest first, texts from A to Z, and the other way at the next click. */
  #sort(column) {
    this.descending = this.column === column ? !this.descending : !TEXTS.includes(column);
    this.column = column;
    this.rows = sorted(this.rows, column, this.descending);
    this.draw();
    this.element.querySelector(`button[data-column="${column}"]`).focus();
  }
}
