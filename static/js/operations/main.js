// The operations page: it fetches the figures every five seconds, and shows those of one space.

import { $, offer, setText } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";
import { createTheme, isDark } from "../theme.js";
import { chartsOf, createCharts } from "./charts.js";
import { extended } from "./series.js";
import { showParts, showQueries, showRegions, showStreams, showTroubles } from "./tables.js";

const EVERY_MS = 5000;

let told = null;
let past = [];
let charts = null;
let drawn = null;

const chosen = () => new URLSearchParams(location.hash.slice(1)).get("space") ?? "earth";

function draw() {
  const space =
    chosen() in told.now.spaces || !Object.keys(told.now.spaces).length ? chosen() : Object.keys(told.now.spaces)[0];
  const spaces = Object.keys(told.now.spaces);
  $("space").parentElement.hidden = spaces.length < 2;
  offer($("space"), [["", spaces.map((name) => [name, name])]], space);
  if (drawn !== space) {
    charts?.remove();
    [charts, drawn] = [createCharts($("charts"), chartsOf(space)), space];
  }
  charts.show(past);
  const figures = told.now.spaces[space] ?? {};
  showParts($("parts"), told.now, space);
  showTroubles($("troubles"), told.troubles);
  showQueries($("queries"), figures, told.names);
  showRegions($("regions"), figures);
  showStreams($("streams"), told.now.streams, space);
}

function fresh(state, text) {
  $("fresh").dataset.state = state;
  setText($("fresh"), text);
}

async function look() {
  try {
    const response = await fetch(`${document.body.dataset.figures}?since_us=${past.at(-1)?.at_us ?? 0}`);
    if (response.status === 401 || response.status === 403) location.reload();
    if (!response.ok) throw new Error(filled(gettext("status %(status)s"), { status: response.status }));
    told = await response.json();
    past = extended(past, told.past);
    draw();
    fresh(
      "good",
      filled(gettext("as of %(time)s UTC"), { time: new Date(told.now.at_us / 1000).toISOString().slice(11, 19) }),
    );
  } catch (error) {
    fresh("bad", filled(gettext("The web server does not answer (%(error)s); trying again"), { error: error.message }));
  }
}

async function follow() {
  await look();
  setTimeout(follow, EVERY_MS);
}

function redraw() {
  setText($("theme"), isDark() ? gettext("Light theme") : gettext("Dark theme"));
  drawn = null;
  if (told) draw();
}

$("space").addEventListener("change", () => {
  location.hash = `space=${encodeURIComponent($("space").value)}`;
});
addEventListener("hashchange", () => told && draw());
pageEvents.on("theme", redraw);
createTheme($("theme"));
redraw();
follow();
