// Groups events by object and query; the group with the newest event comes last. Pure: no DOM, no clock.

import { count } from "../format.js";
import { filled, ngettext } from "../i18n.js";

export const GROUPS_KEPT = 300;
export const EVENTS_OF_GROUP = 50;

/** The events that pass a filter, in groups `{id, newest, events, entered, left}`. While paused, it only counts new events. */
export class EventGroups {
  #groups = new Map();
  #seen = 0; // the number of the newest event read
  #until = Infinity; // the number of the newest event shown

  constructor() {
    this.query = null;
    this.sign = null;
    this.waiting = 0; // events that came while the list was paused
  }

  get paused() {
    return this.#until !== Infinity;
  }

  has(group) {
    return this.#groups.get(group.id) === group;
  }

  /** Group again, with only the events of one query and of one sign; null for all. */
  choose(query, sign) {
    Object.assign(this, { query, sign });
    this.#groups.clear();
    this.#seen = this.waiting = 0;
  }

  /** Show no event that is newer than the last one read. */
  pause() {
    this.#until = this.#seen;
  }

  resume() {
    this.#seen = this.#until;
    this.#until = Infinity;
    this.waiting = 0;
  }

  /** Read the events (newest last) that were not read before. Return the groups that changed, the one with the newest event last. */
  take(events) {
    const changed = new Set();
    for (const event of events.slice(firstAfter(events, this.#seen))) {
      this.#seen = event.number;
      if (!this.#passes(event)) continue;
      if (event.number > this.#until) {
        this.waiting++;
        continue;
      }
      const group = this.#add(event);
      changed.delete(group);
      changed.add(group);
    }
    return [...changed].filter((group) => this.has(group));
  }

  #passes({ query, sign }) {
    return (this.query === null || query === this.query) && (this.sign === null || sign === this.sign);
  }

  #add(event) {
    const id = JSON.stringify([event.query, event.stream, event.key, event.partnerKey, event.group, event.threshold]);
    const group = this.#groups.get(id) ?? { id, events: [], entered: 0, left: 0 };
    group.newest = event;
    group.events.unshift(event);
    group.events.length = Math.min(group.events.length, EVENTS_OF_GROUP);
    group[event.sign > 0 ? "entered" : "left"]++;
    this.#groups.delete(id); // a Map puts what is inserted again last
    this.#groups.set(id, group);
    if (this.#groups.size > GROUPS_KEPT) this.#groups.delete(this.#groups.keys().next().value);
    return group;
  }
}

// What happened, and how many times.
const TIMES = {
  reported: times((number) => ngettext("reported once", "reported %(count)s times", number)),
  crossedAndBack: times((number) => ngettext("crossed and back once", "crossed and back %(count)s times", number)),
  crossed: times((number) => ngettext("crossed once", "crossed %(count)s times", number)),
  uncrossed: times((number) => ngettext("no longer crossed once", "no longer crossed %(count)s times", number)),
  inAndOut: times((number) => ngettext("in and out once", "in and out %(count)s times", number)),
  entered: times((number) => ngettext("entered once", "entered %(count)s times", number)),
  left: times((number) => ngettext("left once", "left %(count)s times", number)),
};

function times(words) {
  return (number) => filled(words(number), { count: count(number) });
}

/** Describe a group of several events: "in and out 6 times", "entered 3 times, left 2 times". */
export function timesText({ entered, left, newest }, reportsAll = false) {
  if (reportsAll) return TIMES.reported(entered + left);
  const [both, to, from] = newest.threshold
    ? [TIMES.crossedAndBack, TIMES.crossed, TIMES.uncrossed]
    : [TIMES.inAndOut, TIMES.entered, TIMES.left];
  if (entered === left) return both(entered);
  return [
    [to, entered],
    [from, left],
  ]
    .filter(([, number]) => number > 0)
    .map(([words, number]) => words(number))
    .join(", ");
}

/** Return the index of the first event with a number above `seen`. Search from the end, where the few new events are. */
function firstAfter(events, seen) {
  let first = events.length;
  while (first > 0 && events[first - 1].number > seen) first--;
  return first;
}
