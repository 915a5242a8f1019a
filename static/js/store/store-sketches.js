// The answers of saved queries of sketches: they are documents, and have no objects.

import { documentsAfter } from "../kinds/sketch/answers.js";
import { hold } from "./store-clocks.js";

/** Take the answers of a message; return the topics that changed. */
export function takeDocuments(store, message, begins) {
  hold(store, message.query, message, begins);
  const before = begins ? [] : (store.sketched.get(message.query) ?? []);
  store.sketched.set(message.query, documentsAfter(before, message.rows));
  return ["queries"];
}
