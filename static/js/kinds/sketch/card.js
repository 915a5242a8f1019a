// What the card of a saved query of a sketch shows: each answer's first value with its bound, and what it is based on.

import { h, setText } from "../../dom.js";
import { basisText, headline } from "./bounds.js";

/** Make the part of the card. */
export function createSketched(store, number) {
  const list = h("ul", { class: "query-answers" });
  const basis = h("p", { class: "hint" });
  const element = h("div", { class: "query-sketch", hidden: true }, list, basis);
  let shown = null;
  const update = ({ status }) => {
    const documents = store.sketched.get(number);
    element.hidden = !documents || status !== "running";
    if (element.hidden || documents === shown) return;
    shown = documents;
    const rows = documents
      .filter(Boolean)
      .map(headline)
      .filter(({ text }) => text);
    list.replaceChildren(...rows.map(({ text, title }) => h("li", {}, `${title}: `, h("b", {}, text))));
    const based = documents.find((document) => document?.basis);
    setText(basis, based ? basisText(based.basis, based.confidence) : "");
  };
  return { element, update };
}
