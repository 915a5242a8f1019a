// The form of a new or edited query: its name, stream, kind, area or focus, figure and filter; and its plan as JSON.

import { $, offer } from "../dom.js";
import { errorField } from "./error-field.js";
import { FilterField } from "./filter-field.js";
import { plainly } from "./filter-words.js";
import { isFlatBox, normalisedBox, rectangleOf, roundedBox, shrunk } from "../geometry.js";
import { filled, gettext } from "../i18n.js";
import { createLookField } from "../look-field.js";
import { COLOURS } from "../looks.js";
import { onEscape } from "../page-events.js";
import { renamed } from "../kinds/about.js";
import { areaIn, boxOf, shapedArea } from "../kinds/plan.js";
import { formOfReport, formParts, kindOf, KINDS, planOf } from "../kinds/registry.js";
import { mayShare } from "../teams/rights.js";
import { chosenTeam, showTeams } from "../teams/team-fields.js";

const NOT_OF_PLAN = ["name", "shared", "team", "severity", "plan"]; // the plan is read when it is edited, not written again
const NO_STREAM = gettext("No stream is switched on. An administrator can add one or switch one on.");
const SIDES = ["west", "south", "east", "north"];

export class QueryForm {
  store;
  editor;
  areas;
  view;
  centerLon;
  center;
  dimensions;
  preview;
  save;
  check;
  past;
  onClose;
  onOpen;
  query = null; // that is edited
  look = createLookField({ colours: COLOURS, variable: "q", within: "form-look" });

  /**
   * @param {Record<string, any>} parts `store`; `editor`, of rectangles; `areas(parts)`, which makes the fields of other areas; `view()`, the map's rectangle; `centerLon()`;
   *   `center()`; `dimensions()`; `preview(query, plan, onDraft)`, which shows a plan with a focus on the map;
   *   `save(query, fields)` and, for a filter, `check(fields)`, which return promises; `past`, which tries plans; `onClose()`; `onOpen(query)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("query-form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.form.elements.stream.addEventListener("change", () => (this.streamChosen = true));
    $("form-cancel").addEventListener("click", () => this.close());
    onEscape("form", () => this.open && (this.close(), true));
    this.tried = this.past.offer($("form-try"), {
      plan: () => (Object.keys(this.#planErrors()).length > 0 ? null : (this.written ?? this.#plan())),
      name: () => this.form.elements.name.value.trim(),
      aside: () => {},
      back: () => {},
    });
    $("form-draw").addEventListener("click", () => this.editor.draw());
    $("form-view").addEventListener("click", () => this.setRectangle(shrunk(this.view())));
    this.parts = this.#made();
    this.area = this.areas({
      form: this.form,
      onChange: () => this.#areaChanged(),
      onError: (text) => this.#error("box", text),
    });
    const [list, offered, line] = ["where-choices", "where-offered", "where-check"].map($);
    const texts = () => this.store.objects.textsOf(this.form.elements.stream.value);
    this.filter = new FilterField({ input: this.form.elements.where, list, offered, line, texts, check: this.check });
    this.form.elements.stream.addEventListener("change", () => this.filter.start());
    this.form.elements.plan.addEventListener("input", () => this.#fromText());
    this.store.on("streams layers", () => this.open && this.#offer());
    this.form.addEventListener("input", ({ target }) => this.#corrected(target), { capture: true });
    for (const kind of ["input", "change"]) {
      this.form.addEventListener(kind, ({ target }) => !NOT_OF_PLAN.includes(target.name) && this.#changed());
    }
    for (const side of SIDES) this.form.elements[side].addEventListener("change", () => this.#fromNumbers());
    for (const example of this.form.querySelectorAll("[data-example]")) {
      example.addEventListener("click", () => {
        this.form.elements.where.value = example.dataset.example;
        this.form.elements.where.focus();
        this.filter.start();
      });
    }
  }

  get open() {
    return !this.form.hidden;
  }

  /** Make the parts of the form, each once; a part may ask for one that was made before it. */
  #made() {
    const made = new Map();
    const { store, form, center, dimensions } = this;
    const part = (Part) => made.get(Part);
    for (const Part of formParts()) made.set(Part, new Part({ store, form, center, dimensions, part, kinds: KINDS }));
    return [...made.values()];
  }

  /** Open the form for a new query, or for an existing one. A new one may begin with a part of a plan, and a name. */
  start(query = null, begun = null, name = "") {
    this.query = query;
    this.form.reset();
    this.#errors({});
    this.#streams(query?.stream ?? begun?.stream ?? "");
    this.streamChosen = Boolean(query ?? begun?.stream);
    $("form-title").textContent = query ? gettext("Edit query") : gettext("New query");
    const { elements } = this.form;
    this.rectangle = null;
    for (const side of SIDES) elements[side].value = "";
    this.#show(query?.plan ?? begun ?? {});
    if (query) {
      elements.name.value = query.name;
      elements.shared.checked = query.shared;
      elements.severity.value = query.severity ?? "";
      this.look.show(query.look);
    } else {
      this.look.show(null);
      elements.name.value = name;
      this.#chooseStream(normalisedBox(this.view()));
      if (!begun) this.editor.draw();
    }
    showTeams(this.form, this.store, query, gettext("no team"));
    elements.shared.disabled = Boolean(query) && !mayShare(this.store, query);
    this.#changed();
    this.filter.start();
    this.tried.reset();
    this.form.hidden = false;
    this.onOpen(query);
    elements.name.focus({ preventScroll: true });
  }

  close() {
    this.form.hidden = true;
    this.query = null;
    this.editor.stop();
    this.area.stop();
    this.preview(null, null);
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
    if (this.open) this.#changed();
  }

  /** Show a plan in the fields, and keep the parts of it that no field shows. */
  #show(plan) {
    this.base = this.named = plan;
    const { elements } = this.form;
    elements.report.value = kindOf(plan).report;
    this.filter.typed.show(plan.where ?? "");
    elements.extent.value = this.shown.pairs && !plan.area ? "whole" : "rectangle";
    for (const part of this.parts) part.start(plan);
    const saved = this.query && !this.query.plan.around ? this.query.plan : null;
    this.area.start(plan.around ? null : areaIn(plan), shapedArea(saved) ?? (saved && boxOf(saved)));
    this.#arrange();
    const box = shapedArea(plan) ? null : boxOf(plan);
    if (box && isFlatBox(box)) this.setRectangle(rectangleOf(box, this.centerLon()));
  }

  /** Show the fields that belong to the kind of query. */
  #arrange() {
    const { elements } = this.form;
    const { parts, rectangles } = this.shown;
    for (const part of this.parts) part.show(parts.includes(part.constructor));
    $("box-fields").hidden = !this.bounded;
    if (rectangles) elements.areaForm.value = "rectangle"; // what lies outside of a shape is not asked for
    for (const radio of elements.areaForm) radio.disabled = rectangles && radio.value !== "rectangle";
    $("outside-hint").hidden = !rectangles;
    const other = this.rectangle && roundedBox(normalisedBox(this.rectangle));
    this.area.show(this.bounded, {
      stream: elements.stream.value,
      filtered: Boolean(elements.where.value.trim()),
      other,
    });
    if (!this.bounded || this.area.shaped) this.editor.stop();
  }

  #areaChanged() {
    this.#error("box", this.area.drawing ? "" : this.area.error());
    const area = this.area.read();
    if (area) this.#chooseStream(boxOf({ area }));
    this.#changed();
  }

  /** What shows of the kind of query. */
  get shown() {
    return formOfReport(this.form.elements.report.value);
  }

  /** The parts that show. */
  get own() {
    return this.parts.filter((part) => this.shown.parts.includes(part.constructor));
  }

  /** Whether a rectangle belongs to the query. */
  get bounded() {
    const { focus, pairs } = this.shown;
    return !focus && (!pairs || this.form.elements.extent.value === "rectangle");
  }

  /** Build the plan again after a field changed. If it was written as JSON, the fields change that plan. */
  #changed() {
    const turnsToPairs = this.shown.pairs && $("pair-fields").hidden;
    if (turnsToPairs && !this.rectangle && !this.area.read()) this.form.elements.extent.value = "whole";
    this.#arrange();
    if (this.bounded && !this.area.shaped && this.rectangle && !this.editor.active) this.editor.edit(this.rectangle);
    this.written = null;
    const plan = this.#plan();
    this.#rename(plan);
    this.form.elements.plan.value = JSON.stringify(plan, null, 2);
    this.#preview(plan);
    this.#error("plan", "");
  }

  /** Show a plan with a focus on the map, and take over what the user drags there. */
  #preview(plan) {
    const ranges = this.shown.focus ? this.own.filter(({ setRange }) => setRange) : [];
    const whole = ranges.length > 0 && Object.keys(errorsOf(ranges)).length === 0;
    const circle = this.bounded ? this.area.around() : null;
    this.preview(this.query, whole ? plan : circle && { stream: plan.stream, ...circle }, (drafted) => {
      if (circle) return this.area.setCircle(drafted);
      for (const part of ranges) part.setRange(drafted);
      this.#changed();
    });
  }

  /** Let a name that was made of figures of the plan follow these. */
  #rename(plan) {
    const { name } = this.form.elements;
    name.value = renamed(name.value, this.named, plan);
    this.named = plan;
  }

  /** Show the plan in the fields after its JSON changed. What they cannot show is sent as it is written. */
  #fromText() {
    try {
      const plan = JSON.parse(this.form.elements.plan.value);
      if (plan === null || typeof plan !== "object" || Array.isArray(plan))
        throw new SyntaxError(gettext("a plan is an object"));
      this.#error("plan", "");
      this.written = plan;
      this.editor.stop();
      this.rectangle = null;
      if (typeof plan.stream === "string") this.form.elements.stream.value = plan.stream;
      this.streamChosen = true;
      const text = this.form.elements.plan.value;
      this.#rename(plan);
      this.#show(plan);
      this.form.elements.plan.value = text;
      this.#preview(plan);
      this.written = plan;
    } catch (error) {
      this.written = undefined;
      this.#error("plan", filled(gettext("The plan must be JSON: %(error)s"), { error: error.message }));
    }
  }

  #plan() {
    const { elements } = this.form;
    const shape = this.bounded ? this.area.read() : null;
    const box = this.bounded && !this.area.shaped && this.rectangle ? roundedBox(normalisedBox(this.rectangle)) : null;
    const fields = {
      stream: elements.stream.value,
      report: elements.report.value,
      where: this.filter.where,
      box,
      shape,
    };
    return planOf(this.base, Object.assign(fields, ...this.own.map((part) => part.read())));
  }

  #fromNumbers() {
    const numbers = SIDES.map((side) => this.form.elements[side].valueAsNumber);
    if (!numbers.every(Number.isFinite)) return;
    const [west, south, typedEast, north] = numbers;
    const east = typedEast < west ? typedEast + 360 : typedEast; // typed the usual way: from 170 to -170 crosses the antimeridian
    this.setRectangle(
      rectangleOf({ lo: [west, Math.min(south, north)], hi: [east, Math.max(south, north)] }, this.centerLon()),
    );
  }

  async #submit() {
    const { elements } = this.form;
    const name = elements.name.value.trim();
    const errors = name ? {} : { name: gettext("Type a name for the query.") };
    Object.assign(errors, this.#planErrors());
    this.#errors(errors);
    if (Object.keys(errors).length > 0) return;
    const plan = this.written ?? this.#plan();
    const save = $("form-save");
    save.disabled = true;
    try {
      await this.save(this.query, {
        name,
        plan,
        shared: elements.shared.checked,
        ...chosenTeam(this.form),
        severity: elements.severity.value,
        look: this.look.read(),
      });
      this.close();
    } catch (error) {
      const field = this.written ? "plan" : (errorField(error.code ?? "", error.english ?? error.message) ?? "form");
      this.#errors({ [this.#isShown(field) ? field : "form"]: plainly(error.message) });
    } finally {
      save.disabled = false;
    }
  }

  /** What is wrong with the fields that make the plan, by field. */
  #planErrors() {
    const errors = {};
    if (!this.written && !this.form.elements.stream.value) errors.stream = NO_STREAM;
    if (this.written === undefined) errors.plan = $("error-plan").textContent;
    else if (this.written === null) {
      if (this.bounded && !this.area.shaped && !this.rectangle)
        errors.box = gettext("Draw a rectangle on the map, or type its sides.");
      if (this.bounded && this.area.error()) errors.box = this.area.error();
      Object.assign(errors, errorsOf(this.own));
    }
    return errors;
  }

  #isShown(field) {
    return !$(`error-${field}`).parentElement.closest("[hidden]");
  }

  /** Offer the streams and layers that there are now. */
  #offer() {
    const before = JSON.stringify(this.#plan());
    this.#streams();
    for (const part of this.parts) part.offer?.();
    if (this.written === null && JSON.stringify(this.#plan()) !== before) this.#changed();
  }

  #streams(chosen) {
    const { stream } = this.form.elements;
    const running = [...this.store.streams.values()].filter(
      (s) => s.enabled !== false || s.name === (chosen ?? stream.value),
    );
    offer(stream, [["", running.map(({ name, title }) => [name, title ?? name])]], chosen);
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
    for (const { id } of this.form.querySelectorAll("[id^=error-]")) {
      const field = id.slice("error-".length);
      this.#error(field, errors[field] ?? "");
    }
    const first = Object.keys(errors)[0];
    if (first === "box") return this.form.elements[this.area.first].focus();
    if (!first || first === "form") return;
    const details = $(`error-${first}`).closest("details");
    if (details) details.open = true;
    const { [first]: target = first } = Object.assign({}, ...this.parts.map((part) => part.first));
    this.form.elements[target].focus();
  }

  /** What was wrong with a field is no longer said once somebody writes in it. */
  #corrected(input) {
    if (input.getAttribute("aria-invalid") === "true") this.#error(SIDES.includes(input.name) ? "box" : input.name, "");
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

/** What is wrong with the fields of some parts, by field. */
function errorsOf(parts) {
  return Object.assign({}, ...parts.map((part) => part.errors()));
}
