// Tries a plan that is not saved on what is stored: the controls in forms, and the panel with what it would have told.

import { $, h, setText } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";
import { namingOf } from "../objects/named.js";
import { SPANS, placeOfRow, progressText, questionOf, resultText, rowText } from "./words.js";

const REFERENCE = "backtest";

export class BacktestPanel {
  store;
  layer;
  send;
  now;
  onPlace;

  /** @param {Record<string, any>} parts `store`; `layer`; `send(message)`; `now()` in ms; `onPlace(place)`, which shows a place on the map */
  constructor(parts) {
    Object.assign(this, parts);
    this.panel = $("backtest");
    $("backtest-close").addEventListener("click", () => this.close());
    $("backtest-back").addEventListener("click", () => this.#back());
    this.panel.addEventListener("keydown", ({ key }) => key === "Escape" && this.close());
    this.list = $("backtest-list");
    this.running = null;
  }

  /**
   * Put the controls into an element of a form.
   * @param {HTMLElement} element
   * @param {Record<string, any>} form `plan()`, or null if the fields are not complete; `name()`; `aside()` makes room for the map, and `back()` opens the form again
   */
  offer(element, form) {
    const span = h(
      "select",
      { "aria-label": gettext("On which time") },
      ...SPANS.map(([value, text]) => new Option(text, value)),
    );
    const start = h("button", { type: "button", class: "small" }, gettext("Try"));
    const show = h("button", { type: "button", class: "small", hidden: true }, gettext("Show on the map"));
    const told = h("p", { class: "try-told", role: "status", hidden: true });
    const bar = h("progress", { max: "1", value: "0", "aria-label": gettext("Back-test"), hidden: true });
    element.append(
      h("span", { class: "label" }, gettext("Try on the past")),
      h("div", { class: "try-row" }, span, start, show),
      bar,
      told,
    );
    const control = { ...form, span, start, show, told, bar };
    start.addEventListener("click", () => (this.running === control ? this.#cancel() : this.#start(control)));
    show.addEventListener("click", () => this.#show(control));
    return { reset: () => this.#reset(control) };
  }

  /** Take a message of the server; return whether it was about a back-test. */
  takes(message) {
    if (!message.type.startsWith("backtest.") && !(message.type === "error" && message.id === REFERENCE)) return false;
    const control = this.running;
    if (!control || message.type === "backtest.cancelled") return true;
    if (message.type === "backtest.progress") {
      control.bar.value = message.share;
      this.#tell(control, progressText(message, control.ruled));
    } else {
      this.#ended(control);
      if (message.type === "error") this.#tell(control, message.message, true);
      else this.#found(control, message);
    }
    return true;
  }

  /** The connection was lost, and with it the back-test. */
  lost() {
    if (!this.running) return;
    const control = this.running;
    this.#ended(control);
    this.#tell(control, gettext("The connection was lost. Try again."), true);
  }

  close() {
    this.panel.hidden = true;
    this.layer.show([]);
  }

  #start(control) {
    const plan = control.plan();
    if (!plan) return this.#tell(control, gettext("Complete the form first."), true);
    if (this.running) this.#cancel();
    this.running = control;
    control.asked = plan;
    control.ruled = Boolean(kindOf(plan).ruled);
    control.spanText = control.span.selectedOptions[0].text;
    control.result = null;
    control.show.hidden = true;
    control.bar.hidden = false;
    control.bar.value = 0;
    setText(control.start, gettext("Cancel"));
    this.#tell(control, gettext("Reading what is stored…"));
    this.send({ ...questionOf(plan, control.span.value, this.now()), id: REFERENCE });
  }

  #cancel() {
    const control = this.running;
    this.#ended(control);
    this.#tell(control, gettext("Cancelled."));
    this.send({ type: "backtest.cancel", id: REFERENCE });
  }

  #ended(control) {
    this.running = null;
    control.bar.hidden = true;
    setText(control.start, gettext("Try"));
  }

  #reset(control) {
    if (this.running === control) this.#cancel();
    control.result = null;
    control.show.hidden = true;
    control.told.hidden = true;
  }

  #found(control, message) {
    control.result = message;
    control.show.hidden = message.summary.spans.length === 0;
    this.#tell(control, resultText(message, control.ruled, control.spanText));
  }

  #tell(control, text, wrong = false) {
    control.told.hidden = false;
    control.told.classList.toggle("wrong", wrong);
    setText(control.told, text);
  }

  #show(control) {
    const { spans, truncated, total } = control.result.summary;
    this.shown = control;
    this.rows = spans;
    setText($("backtest-title"), control.name() || gettext("Back-test"));
    setText($("backtest-text"), resultText(control.result, control.ruled, control.spanText));
    setText(
      $("backtest-more"),
      truncated ? filled(gettext("The first %(shown)s of %(total)s are shown."), { shown: spans.length, total }) : "",
    );
    $("backtest-more").hidden = !truncated;
    const naming = namingOf(this.store, control.asked);
    this.list.replaceChildren(
      ...spans.map((span, index) => {
        const [who, when] = rowText(span, naming);
        return h(
          "li",
          {},
          h(
            "button",
            { type: "button", class: "backtest-row", onclick: () => this.#pick(index) },
            h("strong", {}, who),
            h("span", {}, when),
          ),
        );
      }),
    );
    this.layer.show(spans, (index) => this.#pick(index));
    control.aside();
    this.panel.hidden = false;
    this.list.querySelector("button")?.focus();
  }

  #pick(index) {
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.list.children[index]?.firstChild.setAttribute("aria-current", "true");
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
    this.layer.choose(index);
    const place = placeOfRow(this.rows[index]);
    if (place) this.onPlace(place);
  }

  #back() {
    this.close();
    this.shown.back();
    this.shown.show.focus();
  }
}
