// The answers to the questions of a plan, from the rows in which the server sends them. Pure.

/**
 * Return the documents of all answers after some rows have come, in the order of the questions.
 *
 * @param {object[]} before the documents that were known
 * @param {Record<string, any>} rows columns; a key begins with the number of its question, from 1
 */
export function documentsAfter(before, rows) {
  const documents = [...before];
  for (let row = 0; row < rows.length; row++) {
    const at = Number.parseInt(rows.keys[row], 10) - 1;
    if (at >= 0 && rows.sign[row] >= 0) documents[at] = JSON.parse(rows.properties[row]);
  }
  return documents;
}
