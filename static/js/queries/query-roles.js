// How a query is answered: its home, tracking and participating servers, and the assembler (PLACE*, 2007).

import { h, setText } from "../dom.js";
import { count, degrees } from "../format.js";
import { filled, gettext } from "../i18n.js";

const WORDS = [
  gettext("A focal object's home server keeps its newest version; the tracking server is the region that it visits;"),
  gettext("participating servers are the regions that the range meets;"),
  gettext("the assembler, in this web process, makes one answer of the tuples that they send."),
].join(" ");

/** @param {(...values: any[]) => any} onOpen called with whether the part is open: only then does the server send the roles */
export function createRoles(store, number, onOpen) {
  const parts = {
    home: h("dd"),
    tracking: h("dd"),
    assembler: h("dd"),
    driving: h("dd"),
    rows: h("tbody"),
    none: h("p", { class: "hint" }, gettext("No region takes part: the range has no place now.")),
  };
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      ...[gettext("Participating"), gettext("last second"), gettext("since opened")].map((text) =>
        h("th", { scope: "col" }, text),
      ),
    ),
  );
  const table = h("table", { class: "roles-table" }, head, parts.rows);
  const entry = (name, dd) => h("div", {}, h("dt", {}, name), dd);
  const driving = entry(gettext("Driving stream"), parts.driving);
  driving.title = [
    gettext("Its reports are sent to each region that they reach, those of the other stream to one region each."),
    gettext("The smaller stream drives, if the join allows it."),
  ].join(" ");
  const element = h(
    "details",
    { class: "roles" },
    h("summary", {}, gettext("How it is answered")),
    h(
      "dl",
      {},
      entry(gettext("Home server"), parts.home),
      entry(gettext("Tracking server"), parts.tracking),
      entry(gettext("Assembler"), parts.assembler),
      driving,
    ),
    table,
    parts.none,
    h("p", { class: "hint" }, WORDS),
  );
  element.addEventListener("toggle", () => onOpen(element.open));
  const update = (query) => {
    if (!element.open) return;
    const roles = store.roles.get(number);
    setText(parts.home, homeText(roles, query));
    setText(parts.tracking, trackingText(roles, query));
    setText(parts.assembler, shortened(roles?.assembler ?? ""));
    parts.assembler.title = roles?.assembler ?? "";
    driving.hidden = !roles?.driving;
    setText(parts.driving, roles?.driving ?? "");
    const regions = roles?.regions ?? [];
    table.hidden = regions.length === 0;
    parts.none.hidden = !roles || regions.some(({ participates }) => participates);
    while (parts.rows.children.length > regions.length) parts.rows.lastChild.remove();
    regions.forEach((region, i) => {
      if (!parts.rows.children[i]) parts.rows.append(h("tr", {}, h("th", { scope: "row" }), h("td"), h("td")));
      const [name, last, sent] = parts.rows.children[i].children;
      parts.rows.children[i].dataset.region = region.region;
      parts.rows.children[i].classList.toggle("gone", !region.participates);
      setText(
        name,
        filled(region.participates ? gettext("Region %(number)s") : gettext("Region %(number)s, before"), {
          number: region.region,
        }),
      );
      name.title = extentText(region);
      setText(last, count(region.last_s));
      setText(sent, count(region.sent));
    });
  };
  return { element, update };
}

/** Shorten the name of a hub to as much as tells it from others. */
function shortened(name) {
  const [space, id = ""] = name.split(":");
  return `${space}:${id.slice(0, 8)}\u2026`;
}

function homeText(roles, { plan }) {
  if (!roles) return "\u2026";
  return plan?.around?.key
    ? filled(gettext("partition %(home)s of %(homes)s"), roles)
    : gettext("none: it has no focal object");
}

function trackingText(roles, { plan }) {
  if (!roles) return "\u2026";
  if (!plan?.around?.key) return gettext("none: it does not move");
  if (roles.tracking === null) return gettext("not known: the focal object has not reported");
  const region = roles.regions.find((one) => one.region === roles.tracking);
  const words = region ? gettext("region %(number)s, %(extent)s") : gettext("region %(number)s");
  return filled(words, { number: roles.tracking, extent: region && extentText(region) });
}

function extentText({ lo, hi }) {
  const side = (axis) =>
    filled(gettext("%(from)s to %(to)s"), { from: degrees(lo[axis], axis), to: degrees(hi[axis], axis) });
  return [0, 1]
    .filter((axis) => axis in lo)
    .map(side)
    .join(", ");
}
