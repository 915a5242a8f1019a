// Which charts the page has, and how uPlot draws them.

import { h, setText } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { colour } from "../theme.js";
import { figure, isKnown, rates, ratios, times, values, withGaps } from "./series.js";

const HEIGHT = 170;
const STAGES = {
  home: gettext("home"),
  exchange: gettext("exchange"),
  region: gettext("region"),
  publish: gettext("publish"),
  save: gettext("save"),
};

const sumOf = (space, place) => (entry) => {
  const told = Object.values(entry.streams).filter(([of]) => of === space);
  return told.length ? told.reduce((sum, counts) => sum + (counts[place] ?? 0), 0) : null;
};

/** Return the charts of a space: a title, words, a unit, and series `[label, values of the past]`. */
export function chartsOf(space) {
  const of = (read) => (entry) => (entry.spaces[space] ? read(entry.spaces[space]) : null);
  const stage = (name) => (past) =>
    ratios(
      past,
      of((told) => told.seconds[name]),
      of((told) => told.batches * told.tasks),
    );
  return [
    {
      title: gettext("Elements"),
      words: gettext("read by the engine, per second"),
      unit: "/s",
      series: [
        [
          gettext("elements"),
          (past) =>
            rates(
              past,
              of((told) => told.elements),
            ),
        ],
      ],
    },
    {
      title: gettext("Lag"),
      words: gettext("longest time from arrival to result, and age of the oldest block that nobody has read"),
      unit: "s",
      series: [
        [
          gettext("to result"),
          (past) =>
            values(
              past,
              of((told) => told.lag_s),
            ),
        ],
        [
          gettext("waiting"),
          (past) =>
            values(
              past,
              of((told) => told.oldest_waiting_s),
            ),
        ],
      ],
    },
    {
      title: gettext("Blocks waiting"),
      words: gettext("in the longest partition"),
      unit: "",
      series: [
        [
          gettext("blocks"),
          (past) =>
            values(
              past,
              of((told) => told.waiting_blocks),
            ),
        ],
      ],
    },
    {
      title: gettext("Batch, by stage"),
      words: gettext("mean time of a task"),
      unit: "s",
      sum: true,
      series: Object.entries(STAGES).map(([name, words]) => [words, stage(name)]),
    },
    {
      title: gettext("Longest batch"),
      words: gettext("of the last 15 to 30 seconds"),
      unit: "s",
      series: [
        [
          gettext("longest"),
          (past) =>
            values(
              past,
              of((told) => told.longest_s),
            ),
        ],
      ],
    },
    {
      title: gettext("State"),
      words: gettext("size of the newest durable state"),
      unit: "B",
      series: [
        [
          gettext("state"),
          (past) =>
            values(
              past,
              of((told) => told.state_bytes),
            ),
        ],
      ],
    },
    {
      title: gettext("State written"),
      words: gettext("per second"),
      unit: "B/s",
      series: [
        [
          gettext("written"),
          (past) =>
            rates(
              past,
              of((told) => told.written_bytes),
            ),
        ],
      ],
    },
    {
      title: gettext("Left out"),
      words: gettext("elements per second, of all streams of the space; each stream is in the table below"),
      unit: "/s",
      sum: true,
      series: [
        [gettext("merged"), (past) => rates(past, sumOf(space, 2))],
        [gettext("stale"), (past) => rates(past, sumOf(space, 3))],
        [gettext("lost"), (past) => rates(past, sumOf(space, 4))],
        [gettext("malformed"), (past) => rates(past, sumOf(space, 5))],
      ],
    },
    {
      title: gettext("Clients"),
      words: gettext("connections to the websocket"),
      unit: "",
      series: [
        [
          gettext("connections"),
          (past) =>
            values(
              past,
              of((told) => told.clients.clients),
            ),
        ],
      ],
    },
    {
      title: gettext("Client lag"),
      words: gettext("age of the oldest frame that a client has not taken"),
      unit: "s",
      series: [
        [
          gettext("lag"),
          (past) =>
            values(
              past,
              of((told) => told.clients.lag_s),
            ),
        ],
      ],
    },
    {
      title: gettext("Frames"),
      words: gettext("with answers, per second"),
      unit: "/s",
      series: [
        [
          gettext("frames"),
          (past) =>
            rates(
              past,
              of((told) => told.clients.frames),
            ),
        ],
      ],
    },
    {
      title: gettext("Redis"),
      words: gettext("share of its memory; feeds wait above 60 %"),
      unit: "%",
      series: [[gettext("used"), (past) => values(past, (entry) => (isKnown(entry.redis) ? 100 * entry.redis : null))]],
    },
    {
      title: gettext("Disk"),
      words: gettext("free space of the fullest disk"),
      unit: "B",
      series: [[gettext("free"), (past) => values(past, (entry) => entry.disk)]],
    },
  ];
}

/** Draw charts into an element; return how to show the past, and how to remove them. */
export function createCharts(place, charts) {
  const drawn = charts.map((chart) => createChart(chart));
  place.replaceChildren(...drawn.map(({ element }) => element));
  return {
    show: (past) => drawn.forEach(({ show }) => show(past)),
    remove: () => drawn.forEach(({ remove }) => remove()),
  };
}

function createChart({ title, words, unit, series, sum = false }) {
  const now = h("output", { "aria-label": filled(gettext("%(title)s now"), { title }) });
  const canvas = h("div", {
    role: "img",
    "aria-label": filled(gettext("%(title)s: %(words)s, over the last hour"), { title, words }),
  });
  const element = h(
    "figure",
    { class: "chart ops-card" },
    h("figcaption", {}, h("span", {}, title), now),
    h("p", { class: "hint" }, words),
    canvas,
  );
  const [text, line] = [colour("text-2"), colour("line")];
  const axis = {
    stroke: text,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: "11px system-ui, sans-serif",
  };
  const options = {
    width: 300,
    height: HEIGHT,
    cursor: { drag: { x: false, y: false }, points: { size: 5 } },
    tzDate: (seconds) => globalThis.uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    axes: [
      { ...axis, space: 64, size: 30, values: (_, ticks, __, ___, step) => ticks.map((at) => clock(at, step < 60)) },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((value) => figure(value, unit)) },
    ],
    series: [
      { label: "UTC", value: (_, at) => (isKnown(at) ? clock(at, true) : "\u2013") },
      ...series.map(([label], i) => ({
        label,
        stroke: colour(`s${i}`),
        width: 1.6,
        value: (_, value) => figure(value, unit),
        points: { show: false },
      })),
    ],
  };
  let plot = null;
  const fit = () => plot?.setSize({ width: Math.max(200, canvas.clientWidth), height: HEIGHT });
  const watch = new ResizeObserver(fit);
  const show = (past) => {
    const made = series.map(([, read]) => read(past));
    const found = withGaps(times(past), made);
    if (plot) plot.setData(found);
    else {
      plot = new globalThis.uPlot({ ...options, width: Math.max(200, canvas.clientWidth) }, found, canvas);
      watch.observe(canvas);
    }
    const newest = series.map(([label], i) => [label, made[i].at(-1)]);
    const shown = sum ? [[gettext("in all"), total(newest.map(([, value]) => value))]] : newest;
    setText(
      now,
      shown.map(([label, value]) => (series.length > 1 ? `${label} ` : "") + figure(value, unit)).join(" · "),
    );
  };
  const remove = () => {
    watch.disconnect();
    plot?.destroy();
  };
  return { element, show, remove };
}

/** The time of day in UTC, given seconds since 1970. */
const clock = (at, seconds) => new Date(at * 1000).toISOString().slice(11, seconds ? 19 : 16);

/** The sum of the values that are known; null if none is. */
function total(amounts) {
  const known = amounts.filter((amount) => amount !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}
