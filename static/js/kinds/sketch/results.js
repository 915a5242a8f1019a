// Shows the answers to the questions of a plan: a chart or a table for each, with what it is based on.

import { h } from "../../dom.js";
import { inSentence } from "../../objects/field-words.js";
import { label, localTime } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { basisText, bounded } from "./bounds.js";
import { forecastChart, histogramChart, seriesChart } from "./charts.js";
import { statisticText, statisticTitle } from "./statistics.js";
import { stepText } from "./steps.js";
import { contrastTable, correlationMatrix, figuresTable, regressionTable } from "./tables.js";

const NOTHING = gettext("Nothing was sketched there.");

/** Return how the steps of a question are called, in the time zone of its plan. */
function stepNames(plan, every) {
  const zone = plan.time?.zone;
  const local = (ms) => (zone ? Date.parse(`${localTime(ms, zone).replace(" ", "T")}Z`) : ms);
  return (ms) => stepText([local(ms), local(ms) + 3_600_000], every);
}

export class Results {
  place;
  isDark;

  /** @param {HTMLElement} place @param {(...values: any[]) => any} isDark */
  constructor(place, isDark) {
    Object.assign(this, { place, isDark });
    this.parts = new Map(); // number of a question -> its element and the documents from which it was made
  }

  /** Show answers; an answer that is the same object as before stays as it is, with its focus. */
  show(documents, plan) {
    const order = plan.ask.flatMap((ask, i) => {
      const document = documents[i];
      const deciles =
        ask.question === "histogram"
          ? documents.find((other) => other?.question === "deciles" && other.features[0] === ask.features[0])
          : undefined;
      const beside =
        ask.question === "deciles" &&
        plan.ask.some((other) => other.question === "histogram" && other.features[0] === ask.features[0]);
      return document && !beside ? [this.#part(i, [document, deciles], ask, plan)] : [];
    });
    const focused = this.place.contains(document.activeElement)
      ? document.activeElement.closest("[data-answer]")?.dataset.answer
      : undefined;
    if (order.length !== this.place.children.length || order.some((element, i) => this.place.children[i] !== element))
      this.place.replaceChildren(...order);
    if (focused !== undefined) this.place.querySelector(`[data-answer="${focused}"] .chart-plot`)?.focus();
  }

  /** Make everything again, in other colours or units. */
  forget() {
    this.parts.clear();
    this.place.replaceChildren();
  }

  #part(i, made, ask, plan) {
    const known = this.parts.get(i);
    if (known && known.plan === plan && known.made.every((document, at) => document === made[at])) return known.element;
    const [answer, deciles] = made;
    const body = empty(answer) ? [h("p", { class: "hint" }, NOTHING)] : this.#body(answer, deciles, ask, plan);
    const element = h("section", { class: "sketch-answer", "data-answer": i, "data-question": ask.question }, ...body);
    this.parts.set(i, { element, made, plan });
    return element;
  }

  #body(answer, deciles, ask, plan) {
    const [feature] = answer.features;
    const name = feature ? label(feature) : "";
    const { question } = answer;
    const of = (text) => filled(text, { feature: inSentence(name) });
    if (question === "series") return this.#series(answer, name, ask, plan);
    if (question === "histogram")
      return [
        head(of(gettext("Histogram of %(feature)s"))),
        histogramChart(answer, feature, deciles),
        hint(deciles ? gettext("Dotted lines are the deciles, the full one is the median.") : ""),
      ];
    if (question === "correlation" && answer.features.length > 2) return this.#matrix(answer);
    if (question === "forecast")
      return [
        head(of(gettext("Trend and forecast of %(feature)s"))),
        forecastChart(answer, feature, stepNames(plan, everyOf(answer.every_s))),
        hint(trendText(answer.trend, feature)),
      ];
    if (question === "contrast") return contrastOf(answer, ask);
    if (question === "regression")
      return [
        head(
          filled(gettext("%(feature)s by %(others)s"), {
            feature: name,
            others: ask.by.map((other) => inSentence(label(other))).join(", "),
          }),
        ),
        regressionTable(answer),
      ];
    if (question === "cells")
      return [
        head(gettext("Cells")),
        hint(
          filled(gettext("%(count)s cells have elements. Density, under Layers, draws them."), {
            count: answer.cells.cell.length,
          }),
        ),
      ];
    return [
      head(
        question === "select"
          ? name || gettext("All features")
          : question === "count"
            ? gettext("Count")
            : statisticTitle(question),
      ),
      figuresTable(answer),
    ];
  }

  /** A chart for each feature of a series; a choice says what its bars are. */
  #series(answer, name, ask, plan) {
    const bars = h(
      "select",
      { "aria-label": gettext("Bars") },
      new Option(gettext("Bars: values"), "count"),
      new Option(gettext("Bars: sums"), "sum"),
    );
    const place = h("div");
    const several = answer.features.length > 1;
    const chart = (feature) => [
      ...(several ? [h("p", { class: "chart-name" }, label(feature))] : []),
      seriesChart(answer, feature, bars.value, stepNames(plan, ask.every)),
    ];
    const draw = () => place.replaceChildren(...answer.features.flatMap(chart));
    bars.addEventListener("change", draw);
    draw();
    return [
      h(
        "header",
        {},
        h(
          "h2",
          {},
          several ? gettext("Climate") : filled(gettext("Climate of %(feature)s"), { feature: inSentence(name) }),
        ),
        bars,
      ),
      place,
      hint(gettext("Line: mean; band: least to largest; bars below.")),
    ];
  }

  #matrix(answer) {
    const told = h("p", { class: "chart-told", role: "status" });
    const matrix = correlationMatrix(answer, this.isDark(), (words) => (told.textContent = words));
    return [
      head(gettext("Correlations")),
      h(
        "div",
        { class: "sketch-matrix-scroll", role: "region", tabindex: "0", "aria-label": gettext("Correlations") },
        matrix,
      ),
      told,
    ];
  }
}

function contrastOf(answer, { statistic }) {
  const other = filled(gettext("The other: %(basis)s. A bold difference is sure."), {
    basis: basisText(answer.basis_of_other),
  });
  return [
    head(filled(gettext("Contrast of the %(what)s"), { what: statisticText(statistic) })),
    contrastTable(answer, statistic),
    hint(other),
  ];
}

function head(text) {
  return h("header", {}, h("h2", {}, text));
}

function hint(text) {
  return h("p", { class: "hint" }, text);
}

function empty({ answers, from_us: fromUs, cells }) {
  return answers?.length === 0 || fromUs?.length === 0 || cells?.cell.length === 0;
}

function trendText(trend, feature) {
  if (!trend) return gettext("Too few steps for a trend.");
  return filled(gettext("Trend: %(change)s a year"), {
    change: bounded("contrast", feature, { value: trend.per_year, low: trend.low, high: trend.high }),
  });
}

/** Return what steps of a length are called. */
function everyOf(seconds) {
  const hours = seconds / 3600;
  return hours < 20 ? "hour" : hours < 100 ? "day" : hours < 500 ? "week" : hours < 5000 ? "month" : "year";
}
