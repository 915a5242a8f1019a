// A field for a filter. It offers names and values while the user types, and says what the filter would match.

import { debounced, h } from "../dom.js";
import { FilterError } from "../display-filter/cql2.js";
import { FilterInput } from "./filter-input.js";
import { plainly, sampleFor, suggestions, verdict, vocabularyOf } from "./filter-words.js";
import { filled, ngettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";

const CHECK_AFTER_MS = 350;

export class FilterField {
  input;
  list;
  offered;
  line;
  texts;
  check;

  /**
   * @param {Record<string, any>} parts elements: `input`, `list` of suggestions, `offered`, which says how many there are, and `line` for what the filter
   *   matches; `texts()`, the properties of the objects that it is about, as JSON; `check(fields)`, returning a promise of a `filter.checked`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.typed = new FilterInput(this.input);
    this.option = this.list.id.replace(/s$/, "");
    this.choices = [];
    this.chosen = -1;
    this.asked = 0;
    this.told = ["", ""];
    const checkSoon = debounced(() => this.#check(), CHECK_AFTER_MS);
    this.input.addEventListener("focus", () => {
      this.#read();
      this.input.scrollIntoView({ block: "nearest" }); // above the buttons, which cover the form's end
    });
    this.input.addEventListener("input", () => {
      this.#offer();
      checkSoon();
    });
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("blur", () => this.#close());
    pageEvents.on("units", () => this.#check());
    // A press on the list must not take the focus from the text.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.#take([...this.list.children].indexOf(option));
    });
  }

  /** The filter as a plan has it, or as it is written if that has a wrong unit. */
  get where() {
    return this.typed.where;
  }

  /** Begin with the filter that the field holds. */
  start() {
    this.#close();
    this.#read();
    this.#check();
  }

  #read() {
    this.vocabulary = vocabularyOf(this.texts());
  }

  #offer() {
    if (!this.vocabulary) this.#read();
    const { start, choices } = suggestions(this.input.value, this.input.selectionStart, this.vocabulary);
    this.from = start;
    this.#show(choices);
  }

  #show(choices) {
    this.choices = choices;
    const option = ({ text, words }, number) =>
      h(
        "li",
        { role: "option", id: `${this.option}-${number}`, "aria-selected": "false" },
        h("code", {}, text),
        h("span", { class: "hint" }, words),
      );
    this.list.replaceChildren(...choices.map(option));
    this.list.hidden = choices.length === 0;
    if (choices.length > 0) this.list.scrollIntoView({ block: "nearest" });
    this.#mark(-1);
    this.#showCheck();
    this.offered.textContent = choices.length > 0 ? offeredText(choices.length) : "";
  }

  #mark(number) {
    this.list.children[this.chosen]?.setAttribute("aria-selected", "false");
    this.chosen = number;
    const option = this.list.children[number];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const { key } = event;
    const count = this.choices.length;
    if (key === "ArrowDown" && (count > 0 || event.ctrlKey || !this.input.value)) {
      if (count === 0) this.#offer();
      else this.#mark((this.chosen + 1) % count);
    } else if (key === "ArrowUp" && count > 0) this.#mark((this.chosen + count + (this.chosen < 0 ? 0 : -1)) % count);
    else if ((key === "Enter" || key === "Tab") && this.chosen >= 0) this.#take(this.chosen);
    else if (key === "Escape" && count > 0) {
      this.#close();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  }

  /** Write a choice in place of the word that the user began. */
  #take(number) {
    const caret = this.input.selectionStart;
    this.input.setRangeText(`${this.choices[number].text} `, this.from, caret, "end");
    this.#close();
    this.input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #close() {
    this.#show([]);
  }

  async #check() {
    const asked = ++this.asked;
    const where = this.#filter();
    if (!where) return;
    this.#read();
    const sample = sampleFor(where, this.vocabulary);
    const whole = this.vocabulary.whole && sample.objects.length === this.vocabulary.objects.length;
    try {
      const told = await this.check(sample);
      if (asked === this.asked) this.#tell(...verdict(told, told.whole ?? whole, this.input.value));
    } catch {
      if (asked === this.asked) this.#tell("", "");
    }
  }

  /** Return the filter; say what is wrong with its units, and return an empty one, if something is. */
  #filter() {
    try {
      const where = this.typed.read();
      if (!where) this.#tell("", "");
      return where;
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      this.#tell("bad", plainly(error.message));
      return "";
    }
  }

  #tell(tone, words) {
    this.told = [tone, words];
    this.#showCheck();
  }

  /** Show the verdict on the filter. While its next word is offered, the filter is unfinished, so no fault is shown yet. */
  #showCheck() {
    const [tone, words] = this.told;
    const { line } = this;
    const begun = tone && this.choices.length > 0;
    line.dataset.tone = begun ? "" : tone;
    line.textContent = begun ? "" : words;
  }
}

function offeredText(number) {
  const words = ngettext(
    "%(count)s suggestion. Use the arrow keys.",
    "%(count)s suggestions. Use the arrow keys.",
    number,
  );
  return filled(words, { count: number });
}
