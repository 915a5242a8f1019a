// The names of objects that a list knows by their keys.

import { title } from "../format.js";

/** Return an object's name with its key, as far as the page knows it; otherwise its key. */
function named({ objects }, stream, key) {
  const slot = objects.slot(stream, key);
  const name = slot === undefined ? key : title(key, objects.properties(slot));
  return name === key ? key : `${name} (${key})`;
}

/** Return a function that names the object of a row of a query, or its partner, given the query's plan. */
export function namingOf(store, plan) {
  const partners = plan?.join?.stream ?? plan?.stream;
  return { object: (key) => named(store, plan?.stream, key), partner: (key) => named(store, partners, key) };
}
