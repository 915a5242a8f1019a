// The state of the table in the address, after the view: "#9/60/25&table=stream:ships&sort=-speed_mps&find=anna&only=speed_mps~>5". Pure.

import { readSource } from "./sources.js";

/** The fields of an address that belong to the table. */
export const TABLE_FIELDS = ["table", "sort", "find", "only"];

/** Return the state of the table that a hash holds, `{source, sort, search, conditions}`; null if the table is closed in it. */
export function tableOf(hash) {
  const at = hash.indexOf("&");
  const fields = new URLSearchParams(at < 0 ? "" : hash.slice(at + 1));
  const source = fields.get("table");
  if (!readSource(source)) return null;
  const [, minus, name] = /^(-?)(.+)$/s.exec(fields.get("sort") ?? "") ?? [];
  const conditions = fields
    .getAll("only")
    .map((text) => /^([^~]+)~(.+)$/s.exec(text))
    .filter(Boolean);
  return {
    source,
    sort: name ? { name, descending: minus === "-" } : null,
    search: fields.get("find") ?? "",
    conditions: conditions.map(([, column, written]) => [column, written]),
  };
}

/** Return the part of a hash that holds the state of the table; "" for null, a closed table. */
export function tableHash(state) {
  if (!state) return "";
  const fields = new URLSearchParams({ table: state.source });
  if (state.sort) fields.set("sort", `${state.sort.descending ? "-" : ""}${state.sort.name}`);
  if (state.search) fields.set("find", state.search);
  for (const [name, written] of state.conditions) fields.append("only", `${name}~${written}`);
  return `&${fields}`;
}
