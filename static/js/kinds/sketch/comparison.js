// The figures of a sketch beside those of the stored elements that it summarises.

import { h } from "../../dom.js";
import { count } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { bounded, figure, titleOf } from "./bounds.js";
import { chosenRows, figuresOf, MOST_ROWS, obstacle, questionFor } from "./exact.js";

const STATISTICS = ["count", "mean", "min", "max"];

/**
 * Compare the sketch with the history, for the place and the times of a plan.
 *
 * @param {Record<string, any>} plan
 * @param {string} feature
 * @param {Record<string, any>} parts `asker`; `ask(message)`, a promise of the reply; `stored`, whether the stream is stored; `nowMs`, the stream's time
 * @returns {Promise<HTMLElement[]>} a table, or why there is none
 */
export async function compared(plan, feature, { asker, ask, stored, nowMs }) {
  const why = stored
    ? obstacle(plan)
    : gettext("The elements of this stream are not stored, so there is nothing to compare with.");
  if (why) return [h("p", { class: "notice" }, why)];
  try {
    const [sketched, { rows, truncated }] = await Promise.all([
      once(plan, feature, asker),
      ask(questionFor(plan, nowMs)),
    ]);
    if (truncated) {
      const words = gettext(
        "More than %(count)s elements are stored for this place and time, too many for the page. Choose a smaller place or a shorter time.",
      );
      return [h("p", { class: "notice" }, filled(words, { count: count(MOST_ROWS) }))];
    }
    return [table(sketched, figuresOf(chosenRows(rows, plan, nowMs), feature), feature)];
  } catch (error) {
    return [h("p", { class: "field-error", role: "alert" }, error.message)];
  }
}

/** Return the sketch's answers for the same selection, by statistic. */
function once(plan, feature, asker) {
  const { other, ...selection } = plan;
  const asked = { ...selection, ask: [{ question: "select", features: [feature] }], once: true };
  return new Promise((resolve, reject) => {
    const question = asker.ask(
      { plan: asked },
      {
        answers: ([answer]) => resolve(new Map(answer.answers.map((entry) => [entry.statistic, entry]))),
        error: (message) => {
          question.end();
          reject(new Error(message));
        },
      },
    );
  });
}

function table(sketched, exact, feature) {
  const rows = STATISTICS.map((statistic) => {
    const answer = sketched.get(statistic);
    const inside = answer.low <= exact[statistic] && exact[statistic] <= answer.high;
    const verdict =
      exact.count === 0 && statistic !== "count" ? "\u2013" : inside ? gettext("within") : gettext("outside");
    return h(
      "tr",
      { "data-statistic": statistic },
      h("th", { scope: "row" }, titleOf(statistic, feature)),
      h("td", {}, bounded(statistic, feature, answer)),
      h("td", {}, figure(statistic, feature, exact[statistic])),
      h("td", {}, verdict),
    );
  });
  const heads = ["", gettext("Sketch"), gettext("Exact"), gettext("Bound")].map((text) =>
    text ? h("th", { scope: "col" }, text) : h("td"),
  );
  return h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
}
