// The form of a query, new or edited: name, stream, inside or outside, rectangle, filter.

import { $ } from "./dom.js";
import { errorField } from "./format.js";
import { normalisedBox, rectangleOf, roundedBox } from "./geometry.js";
import { planOf } from "./plan.js";

const SIDES = ["west", "south", "east", "north"];

export class QueryForm {
  /**
   * @param {object} parts `store`; `editor`, a RectangleEditor; `view()`, the map's rectangle; `centerLon()`;
   *   `save(query, fields)` returning a promise; `onClose()`; `onOpen(query)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("query-form");
    this.query = null;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.form.elements.stream.addEventListener("change", () => (this.streamChosen = true));
    $("form-cancel").addEventListener("click", () => this.close());
    $("form-draw").addEventListener("click", () => this.editor.draw());
    $("form-view").addEventListener("click", () => this.setRectangle(shrunk(this.view())));
    for (const side of SIDES) this.form.elements[side].addEventListener("change", () => this.#fromNumbers());
    for (const example of this.form.querySelectorAll("[data-example]")) {
      example.addEventListener("click", () => {
        this.form.elements.where.value = example.dataset.example;
        this.form.elements.where.focus();
      });
    }
  }

  get open() {
    return !this.form.hidden;
  }

  /** Open for a new query, or for an existing one. */
  start(query = null) {
    this.query = query;
    this.form.reset();
    this.#errors({});
    this.#streams(query?.stream);
    this.streamChosen = Boolean(query);
    $("form-title").textContent = query ? "Edit query" : "New query";
    const { elements } = this.form;
    if (query) {
      elements.name.value = query.name;
      elements.report.value = query.plan.report ?? "inside";
      elements.where.value = query.plan.where ?? "";
      elements.shared.checked = query.shared;
      this.setRectangle(rectangleOf(query.plan.compare, this.centerLon()));
    } else {
      this.rectangle = null;
      this.#chooseStream(normalisedBox(this.view()));
      for (const side of SIDES) elements[side].value = "";
      this.editor.draw();
    }
    this.form.hidden = false;
    this.onOpen(query);
    elements.name.focus({ preventScroll: true });
  }

  close() {
    this.form.hidden = true;
    this.query = null;
    this.editor.stop();
    this.onClose();
  }

  /** Take over a rectangle, and show it with handles. */
  setRectangle(rectangle) {
    this.editor.edit(rectangle);
    this.showNumbers(rectangle);
  }

  /** Take over a rectangle that the editor shows already. */
  showNumbers(rectangle) {
    this.rectangle = rectangle;
    const { lo, hi } = roundedBox(normalisedBox(rectangle));
    this.#chooseStream({ lo, hi });
    [lo[0], lo[1], hi[0], hi[1]].forEach((number, i) => (this.form.elements[SIDES[i]].value = number));
    this.#error("box", "");
  }

  #fromNumbers() {
    const numbers = SIDES.map((side) => this.form.elements[side].valueAsNumber);
    if (!numbers.every(Number.isFinite)) return;
    let [west, south, east, north] = numbers;
    if (east < west) east += 360; // typed the usual way: from 170 to -170 crosses the antimeridian
    this.setRectangle(rectangleOf({ lo: [west, Math.min(south, north)], hi: [east, Math.max(south, north)] }, this.centerLon()));
  }

  async #submit() {
    const { elements } = this.form;
    const name = elements.name.value.trim();
    const errors = {};
    if (!name) errors.name = "Give the query a name.";
    if (!elements.stream.value) errors.stream = "Choose a stream.";
    if (!this.rectangle) errors.box = "Draw a rectangle on the map, or type its sides.";
    this.#errors(errors);
    if (Object.keys(errors).length > 0) return;
    const box = roundedBox(normalisedBox(this.rectangle));
    const fields = { stream: elements.stream.value, report: elements.report.value, where: elements.where.value.trim() };
    const plan = planOf(this.query?.plan, { ...fields, box });
    const save = $("form-save");
    save.disabled = true;
    try {
      await this.save(this.query, { name, plan, shared: elements.shared.checked });
      this.close();
    } catch (error) {
      this.#errors({ [errorField(error.code ?? "", error.message) ?? "form"]: error.message });
    } finally {
      save.disabled = false;
    }
  }

  #streams(chosen) {
    const select = this.form.elements.stream;
    const streams = [...this.store.streams.values()].filter((s) => s.enabled !== false || s.name === chosen);
    select.replaceChildren(...streams.map((s) => new Option(s.title ?? s.name, s.name, false, s.name === chosen)));
    if (chosen && !this.store.streams.has(chosen)) select.append(new Option(chosen, chosen, false, true));
  }

  /** Propose the stream with the most objects in a box, until the user has chosen one. */
  #chooseStream(box) {
    if (this.streamChosen) return;
    const { options } = this.form.elements.stream;
    const names = [...options].map((option) => option.value);
    const busiest = [...this.store.objects.countIn(box).keys()].find((name) => names.includes(name));
    if (busiest) this.form.elements.stream.value = busiest;
  }

  #errors(errors) {
    for (const field of ["name", "stream", "box", "where", "form"]) this.#error(field, errors[field] ?? "");
    const first = Object.keys(errors)[0];
    const target = first === "box" ? "west" : first;
    if (first && first !== "form") this.form.elements[target].focus();
  }

  #error(field, text) {
    $(`error-${field}`).textContent = text;
    $(`error-${field}`).hidden = !text;
    for (const name of field === "box" ? SIDES : [field]) {
      const input = this.form.elements[name];
      if (input instanceof HTMLElement) input.setAttribute("aria-invalid", String(Boolean(text)));
    }
  }
}

function shrunk({ west, south, east, north }) {
  const [dx, dy] = [(east - west) / 4, (north - south) / 4];
  return { west: west + dx, south: Math.max(south + dy, -85), east: east - dx, north: Math.min(north - dy, 85) };
}
