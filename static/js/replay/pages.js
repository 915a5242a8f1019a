// Reads pages of a replay, and gathers rows of them. Pure.

import { batchColumns, columnsOf, headOf } from "../store/frames.js";

/**
 * Read a page, a binary frame, into its head with `rows`: the columns of `frames.js`, and `atMs`, when each row became known. A
 * page of answers has `queries`, the numbers of the queries, too.
 */
export function readPage(Arrow, buffer) {
  const table = Arrow.tableFromIPC(new Uint8Array(buffer));
  const head = headOf(table);
  const ends = { fromMs: head.from_us / 1000, untilMs: head.until_us / 1000 };
  const [batch] = table.batches.filter(({ numRows }) => numRows > 0); // the server writes one batch
  if (!batch) return { ...head, ...ends, rows: { ...columnsOf([]), atMs: new Float64Array(0), queries: [] } };
  const numbers = (name, unit) =>
    Float64Array.from(
      batch.getChild(name)?.data[0].values.subarray(0, batch.numRows) ?? [],
      (value) => Number(value) / unit,
    );
  return {
    ...head,
    ...ends,
    rows: { ...batchColumns(batch), atMs: numbers("at_us", 1000), queries: numbers("query", 1) },
  };
}

/** Return some rows, given as `{rows, row}`, as columns of their own; their signs are those given. */
export function gather(refs, signs) {
  const column = (name) => refs.map(({ rows, row }) => rows[name][row]);
  const numbers = (name) => Float64Array.from(refs, ({ rows, row }) => rows[name][row]);
  return {
    length: refs.length,
    sign: Int8Array.from(signs),
    reason: column("reason"),
    keys: column("keys"),
    timeMs: numbers("timeMs"),
    lon: numbers("lon"),
    lat: numbers("lat"),
    alt: numbers("alt"),
    properties: column("properties"),
    partners: null,
    ranks: null,
    distances: null,
    atMs: numbers("atMs"),
  };
}

/** Return the index of the first row after a time; the rows are ordered by `atMs`. */
export function firstAfter(atMs, ms, from = 0) {
  let [low, high] = [from, atMs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (atMs[middle] <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return the rows from `start` to before `end`. */
export function cut(rows, start, end) {
  const columns = Object.entries(rows).map(([name, column]) => [name, column?.slice?.(start, end) ?? null]);
  return { ...Object.fromEntries(columns), length: end - start };
}
