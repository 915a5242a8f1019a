// What the browser keeps of the page from one visit to the next.

const PREFIX = "lookout-";

/** What was remembered under a name; null where nothing was, or where storage is forbidden. */
export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
  } catch {
    return null;
  }
}

/** Remember something; where storage is forbidden it holds for this page alone. */
export function remember(name, content) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(content));
  } catch {
    // See above.
  }
}
