// The form of a rule: which query it watches, for how long or how often, when it counts, and the whole in one sentence.

import { $, offer, setText } from "../../dom.js";
import { filled, gettext } from "../../i18n.js";
import { kindOf } from "../registry.js";
import { measureFields } from "../../measure-field.js";
import { pageEvents } from "../../page-events.js";
import { measureOf } from "../../quantities.js";
import { limitText } from "../../queries/query-words.js";
import { errorsOfRule, fieldsOfRule, planOfRule } from "./fields.js";
import { chosenTeam, showTeams } from "../../teams/team-fields.js";
import { ruleSentences } from "./words.js";

const ERRORS = ["name", "objects", "bound", "back", "forMin", "expected", "moreThan", "rearmMin", "days", "form"];

/** Whether a rule can watch a query: objects enter its answer and leave it, or it has values. */
export function canBeWatched({ plan, status }) {
  const { ruled, asked, told } = kindOf(plan);
  return plan && !ruled && !asked && !told && plan.emit !== "all" && status !== "cancelled";
}

/** What a rule is about, as the form says it. */
function aboutOf({ whole, silent }) {
  if (silent) return "silent";
  return whole ? "whole" : "each";
}

/** Return the lines of a text, each once, without blanks about them. */
const linesOf = (text) => [...new Set(text.split(/[\n,;]/).map((line) => line.trim()))].filter(Boolean);

export class RuleForm {
  store;
  past;
  save;
  onSaved;

  /** @param {Record<string, any>} parts `store`; `past`, which tries plans; `save(rule, fields)`, which returns a promise; `onSaved(query)` */
  constructor(parts) {
    Object.assign(this, parts);
    this.dialog = $("rule-dialog");
    this.form = $("rule-form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.measures = measureFields(this.form.elements, { bound: null, back: null });
    pageEvents.on("units", () => this.dialog.open && this.#changed());
    this.form.addEventListener("input", () => this.#changed());
    $("rule-cancel").addEventListener("click", () => this.dialog.close());
    this.tried = this.past.offer($("rule-try"), {
      plan: () => this.#plan(),
      name: () => this.form.elements.name.value.trim(),
      aside: () => this.dialog.close(),
      back: () => this.dialog.showModal(),
    });
  }

  /** Open the form for a new rule that watches a query. */
  start(query) {
    const when = query.plan.aggregate ? { value: { query: query.query, below: NaN } } : { query: query.query };
    const fields = fieldsOfRule({ stream: query.plan.stream, when });
    this.#open(null, filled(gettext("%(query)s, alarm"), { query: query.name }), {
      ...fields,
      forMin: 5,
      rearmMin: 10,
    });
  }

  /** Open the form for a rule; return false if it cannot show it. */
  edit(rule) {
    const fields = fieldsOfRule(rule.plan);
    if (fields) this.#open(rule, rule.name, fields);
    return fields !== null;
  }

  #open(rule, name, fields) {
    this.rule = rule;
    this.stream = fields.stream;
    this.watched = fields.query;
    const { elements } = this.form;
    setText($("rule-title"), rule ? gettext("Edit rule") : gettext("New rule"));
    elements.name.value = name;
    this.valued = fields.valued;
    elements.about.value = aboutOf(fields);
    elements.expected.value = fields.expected.join("\n");
    elements.side.value = fields.side;
    elements.group.value = fields.group;
    for (const [bound, field] of Object.entries(this.measures)) {
      field.measureIn(fields.valued ? this.#measure() : null);
      field.show(fields[bound]);
    }
    $("rule-groups").replaceChildren(...this.#groups().map((group) => new Option(group, group)));
    elements.limit.value = fields.limit;
    elements.objects.value = fields.objects;
    elements.often.value = fields.often ? "often" : "long";
    for (const number of ["forMin", "moreThan", "withinMin", "rearmMin"]) elements[number].value = fields[number];
    elements.scheduled.checked = fields.scheduled;
    elements.from.value = fields.from;
    elements.to.value = fields.to;
    elements.timeZone.value = fields.timeZone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    for (const day of elements.day) day.checked = fields.days.includes(day.value);
    elements.severity.value = rule ? (rule.severity ?? "") : "warning";
    showTeams(this.form, this.store, rule, gettext("no team"));
    this.#offer(fields);
    this.#errors({});
    this.#changed();
    this.tried.reset();
    this.dialog.showModal();
    elements.name.focus();
  }

  #offer(fields) {
    const others = [...this.store.queries.values()].filter(
      (query) =>
        query.plan?.stream === this.stream &&
        canBeWatched(query) &&
        !query.plan.aggregate &&
        query.query !== this.watched,
    );
    const choices = others.map(({ query, name }) => [String(query), name]);
    for (const field of ["also", "unless"])
      offer(this.form.elements[field], [["", [["", gettext("no other query")], ...choices]]], String(fields[field]));
    const left = choices.map(([number, query]) => [number, filled(gettext("it has also left %(query)s"), { query })]);
    offer(this.form.elements.until, [["", [["", gettext("that is no longer so")], ...left]]], String(fields.until));
  }

  #fields() {
    const { elements } = this.form;
    const number = (name) => elements[name].valueAsNumber;
    const query = (name) => (elements[name].value ? Number(elements[name].value) : "");
    return {
      stream: this.stream,
      query: this.watched,
      ...Object.fromEntries(["also", "unless", "until"].map((name) => [name, query(name)])),
      whole: !this.valued && elements.about.value === "whole",
      silent: this.#silent,
      expected: linesOf(elements.expected.value),
      valued: this.valued,
      side: elements.side.value,
      group: this.#grouped ? elements.group.value.trim() : "",
      grouped: this.#grouped,
      ...Object.fromEntries(Object.entries(this.measures).map(([name, { own }]) => [name, own])),
      limit: elements.limit.value,
      objects: number("objects"),
      often: !this.#silent && elements.often.value === "often",
      ...Object.fromEntries(["forMin", "moreThan", "withinMin", "rearmMin"].map((name) => [name, number(name)])),
      scheduled: elements.scheduled.checked,
      days: [...elements.day].filter((day) => day.checked).map((day) => day.value),
      from: elements.from.value,
      to: elements.to.value,
      timeZone: elements.timeZone.value.trim(),
    };
  }

  /** The plan as the fields say it; null if they are not complete. */
  #plan() {
    const fields = this.#fields();
    return Object.keys(errorsOfRule("named", fields)).length > 0 ? null : planOfRule(fields);
  }

  #changed() {
    const fields = this.#fields();
    $("rule-long").hidden = fields.often;
    $("rule-whole").hidden = !fields.whole;
    $("rule-about").hidden = fields.valued;
    $("rule-value").hidden = !fields.valued;
    $("rule-group").hidden = !fields.grouped;
    $("rule-objects").hidden = fields.limit === "none";
    $("rule-silent").hidden = !fields.silent;
    $("rule-frequency").hidden = fields.silent;
    setText(
      $("rule-for"),
      fields.silent ? gettext("Without a report for, in minutes") : gettext("For at least, in minutes"),
    );
    const ofNumber = fields.whole || fields.valued || fields.silent;
    $("rule-others").hidden = ofNumber;
    $("rule-until").hidden = fields.often || ofNumber;
    $("rule-back").hidden = fields.often || fields.silent || !ofNumber;
    setText(
      $("rule-times"),
      ofNumber ? gettext("It began to be so more than, times") : gettext("It entered more than, times"),
    );
    $("rule-often").hidden = !fields.often;
    $("rule-schedule").hidden = !fields.scheduled;
    const errors = errorsOfRule("named", fields);
    setText(
      $("rule-sentence"),
      Object.values(errors)[0] ??
        ruleSentences(
          planOfRule(fields),
          (number) => this.#nameOf(number),
          (number, limit) => limitText(this.store.queries.get(number)?.plan, limit),
        ),
    );
  }

  /** What the watched value is measured in; null without a unit. */
  #measure() {
    const { property } = this.store.queries.get(this.watched)?.plan?.aggregate ?? {};
    return property ? measureOf(property) : null;
  }

  /** Whether the rule is about objects that fall silent. */
  get #silent() {
    return !this.valued && this.form.elements.about.value === "silent";
  }

  /** Whether the watched aggregate has groups. */
  get #grouped() {
    return Boolean(this.valued && this.store.queries.get(this.watched)?.plan?.aggregate?.group_by);
  }

  /** The groups that the watched aggregate has now. */
  #groups() {
    return [...(this.store.figures.get(this.watched)?.groups.keys() ?? [])].filter(Boolean).sort();
  }

  #nameOf(number) {
    return this.store.queries.get(number)?.name ?? filled(gettext("query %(number)s"), { number });
  }

  async #submit() {
    const { elements } = this.form;
    const [name, fields] = [elements.name.value.trim(), this.#fields()];
    const errors = errorsOfRule(name, fields);
    this.#errors(errors);
    if (Object.keys(errors).length > 0) return;
    $("rule-save").disabled = true;
    try {
      const saved = await this.save(this.rule, {
        name,
        plan: planOfRule(fields),
        ...chosenTeam(this.form),
        severity: elements.severity.value,
      });
      this.dialog.close();
      this.onSaved(saved);
    } catch (error) {
      this.#errors({ form: error.message });
    } finally {
      $("rule-save").disabled = false;
    }
  }

  #errors(errors) {
    for (const field of ERRORS) {
      $(`rule-error-${field}`).textContent = errors[field] ?? "";
      $(`rule-error-${field}`).hidden = !errors[field];
    }
  }
}
