// What a user may do with what teams share, as the page shows it. The server decides; this only hides what it would refuse. Pure.

import { filled, gettext } from "../i18n.js";

const EDITORS = ["analyst", "admin"];

/** Whether the user may change or delete something with `mine` and `team`. */
export function mayEdit(store, { mine, team }) {
  return mine !== false || EDITORS.includes(store.teams.get(team)?.role);
}

/** Whether the user may choose who sees it. */
export function mayShare(store, { mine, team }) {
  return mine !== false || store.teams.get(team)?.role === "admin";
}

/** Return the teams in which the user may create something, as choices of a form: `[number, name]`; with one that is chosen already. */
export function teamChoices(store, chosen = null) {
  const teams = [...store.teams.values()].filter(({ team, role }) => EDITORS.includes(role) || team === chosen);
  return teams.map(({ team, name }) => [String(team), name]);
}

/** Return the number of a team that a form has, or null. */
export const teamOf = (text) => (text ? Number(text) : null);

/** Say with whom something is shared; empty if with nobody. */
export function sharedText(store, /** @type {Record<string, any>} */ { team, shared }) {
  const name =
    team === null || team === undefined
      ? ""
      : (store.teams.get(team)?.name ?? filled(gettext("number %(number)s"), { number: team }));
  return [name && filled(gettext("team %(name)s"), { name }), shared && gettext("all users")]
    .filter(Boolean)
    .join(", ");
}
