// The answers that are tables: figures of a feature, correlations as a matrix, the contrast of two places or times, regressions.

import { h } from "../../dom.js";
import { inSentence } from "../../objects/field-words.js";
import { count, label } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { bounded, figure, membership, titleOf } from "./bounds.js";
import { colourAt, css } from "./colours.js";
import { joinedNames } from "./statistics.js";

/** Make a table of single figures with their bounds. */
export function figuresTable(answer) {
  const rows = answer.answers.map((entry) => {
    const statistic = entry.statistic ?? answer.question;
    const [feature] = [entry.of].flat();
    const name = titleOf(statistic, entry.of) + (entry.part ? `, ${Math.round(100 * entry.part)} %` : "");
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h(
        "td",
        {},
        "present" in entry
          ? membership(entry)
          : bounded(statistic === "deciles" ? "mean" : statistic, feature ?? "", entry),
      ),
    );
  });
  return h("table", { class: "sketch-figures" }, h("tbody", {}, ...rows));
}

/** Make the matrix of correlations: a cell for each pair, coloured by how strong it is; a button tells its bounds. */
export function correlationMatrix(answer, dark, onTell) {
  const { features } = answer;
  const known = new Map(answer.answers.map((entry) => [entry.of.join("\n"), entry]));
  const of = (one, other) => known.get([one, other].join("\n")) ?? known.get([other, one].join("\n"));
  const head = h(
    "tr",
    {},
    h("td"),
    ...features.slice(0, -1).map((name) => h("th", { scope: "col" }, h("span", {}, label(name)))),
  );
  const rows = features
    .slice(1)
    .map((name, row) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, label(name)),
        ...features
          .slice(0, row + 1)
          .map((other) => matrixCell(of(other, name), [other, name], { n: answer.basis.elements, dark, onTell })),
      ),
    );
  return h("table", { class: "sketch-matrix" }, h("thead", {}, head), h("tbody", {}, ...rows));
}

function matrixCell(entry, names, { n, dark, onTell }) {
  if (!entry || entry.value === null) return h("td", {}, "\u2013");
  const told = { title: titleOf("correlation", names), value: bounded("correlation", "", entry), count: count(n) };
  const words = filled(gettext("%(title)s: %(value)s, of %(count)s elements"), told);
  const button = h(
    "button",
    {
      type: "button",
      class: "quiet",
      title: words,
      "aria-label": words,
      onclick: () => onTell(words),
      onfocus: () => onTell(words),
      onpointerenter: () => onTell(words),
    },
    entry.value.toFixed(2).replace("-", "\u2212").replace("0.", "."),
  );
  const colour = colourAt(Math.abs(entry.value), dark);
  const bright = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] > 132;
  Object.assign(button.style, { background: css(colour), color: bright ? "#10181e" : "#ffffff" });
  return h("td", {}, button);
}

/** Make the table of a contrast: both values and their difference, with bounds. */
export function contrastTable(answer, statistic) {
  const rows = answer.answers.map((entry) => {
    const [feature] = [entry.of].flat();
    const sure = entry.low > 0 || entry.high < 0;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, joinedNames([entry.of].flat().map(label))),
      h("td", {}, figure(statistic, feature, entry.one.value)),
      h("td", {}, figure(statistic, feature, entry.other.value)),
      h("td", { class: sure ? "sure" : null }, bounded("contrast", feature, entry)),
    );
  });
  const heads = [gettext("Feature"), gettext("Here"), gettext("Other"), gettext("Difference")].map((text) =>
    h("th", { scope: "col" }, text),
  );
  return h("table", { class: "sketch-contrast" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
}

/** Make the table of a regression: its coefficients, how much it explains, and what it predicts. */
export function regressionTable({ intercept, coefficients, r2, n, prediction, features: [feature] }) {
  const line = (name, entry) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, bounded("regression", "", entry)));
  const rows = [
    line(gettext("Constant"), intercept),
    ...coefficients.map((entry) =>
      line(filled(gettext("Times %(feature)s"), { feature: inSentence(label(entry.of)) }), entry),
    ),
  ];
  rows.push(
    line(gettext("Explained share"), { value: r2 }),
    h("tr", {}, h("th", { scope: "row" }, gettext("Elements")), h("td", {}, count(n))),
  );
  if (prediction)
    rows.push(
      h("tr", {}, h("th", { scope: "row" }, gettext("Predicted")), h("td", {}, bounded("mean", feature, prediction))),
    );
  return h("table", { class: "sketch-figures" }, h("tbody", {}, ...rows));
}
