// The choice of a team in the forms of queries and layers; it is not shown to users who are in no team.

import { offer } from "../dom.js";
import { mayShare, teamChoices, teamOf } from "./rights.js";

/** Show the choice of a team in a form that has a select `team` within `.team-field`, for a thing (null: a new one). */
export function showTeams(form, store, thing, none) {
  const { team: select } = form.elements;
  const team = thing?.team ?? null;
  const choices = teamChoices(store, team);
  offer(select, [["", [["", none], ...choices]]], team === null ? "" : String(team));
  select.closest(".team-field").hidden = choices.length === 0;
  select.disabled = Boolean(thing) && !mayShare(store, thing);
}

/** Return the field `team` of a message, if the form offers the choice; otherwise nothing. */
export function chosenTeam(form) {
  const { team: select } = form.elements;
  return select.closest(".team-field").hidden || select.disabled ? {} : { team: teamOf(select.value) };
}
