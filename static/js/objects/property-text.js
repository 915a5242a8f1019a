// Reads single properties from the JSON texts of objects, as the server writes them, without parsing the whole. Pure.

/** Return a function of a JSON text that returns the value of a property; undefined if it is missing or null. */
export function reader(name) {
  const token = tokenReader(name);
  return (text) => {
    const found = token(text);
    return found === undefined ? undefined : JSON.parse(found);
  };
}

/** Return a function of a JSON text that returns the value of a property as it is written there; undefined if it is missing or null. */
export function tokenReader(name) {
  const written = `${JSON.stringify(name)}:`;
  return (text) => {
    const at = text.indexOf(written);
    if (at < 0) return undefined;
    const flat = text.indexOf("{", 1) < 0 && !text.includes("[");
    const found = flat ? at : outermost(text, written);
    if (found < 0) return undefined;
    const from = found + written.length;
    const token = text.slice(from, endOf(text, from)).trim();
    return token === "null" ? undefined : token;
  };
}

/** Return where a name with its colon is in the outermost of nested objects; -1 if it is not there. */
function outermost(text, written) {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (depth === 1 && text[at] === '"' && text.startsWith(written, at)) return at;
    if (text[at] === '"') at = closing(text, at) - 1;
    else depth += { "{": 1, "[": 1, "}": -1, "]": -1 }[text[at]] ?? 0;
  }
  return -1;
}

/** Return where the value that begins at a place ends. */
function endOf(text, from) {
  if (text[from] === '"') return closing(text, from);
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '"') at = closing(text, at) - 1;
    else if (depth === 0 && ",}]".includes(text[at])) return at;
    else depth += { "{": 1, "[": 1, "}": -1, "]": -1 }[text[at]] ?? 0;
  }
  return text.length;
}

/** Return where a text that begins at a quote ends. */
function closing(text, from) {
  let at = from + 1;
  while (text[at] !== '"' && at < text.length) at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}
