// The form of a stream in the admin: it shows only the options of the chosen kinds, and tests what is filled in.

import { filled, gettext } from "../i18n.js";
import { followKinds, text } from "./kind-options.js";

const form = /** @type {any} */ (document.getElementById("stream_form"));
const answer = document.getElementById("trial-answer");

followKinds(form);
const button = /** @type {any} */ (document.getElementById("trial"));
button.addEventListener("click", test);

async function test() {
  button.disabled = true;
  show(text("p", gettext("Reading…")));
  try {
    const body = new FormData(form);
    if (!body.has("space")) body.set("space", button.dataset.space); // a saved stream keeps its space, so the form has no such field
    const response = await fetch(button.dataset.address, { method: "POST", body });
    if (!response.ok) throw new Error(filled(gettext("the server answered %(status)s"), { status: response.status }));
    show(...told(await response.json()));
  } catch (error) {
    show(text("p", error.message, "errornote"));
  } finally {
    button.disabled = false;
  }
}

function told(trial) {
  const errors = Object.values(trial.errors ?? {})
    .flat()
    .concat(trial.error ?? []);
  const malformed = Object.entries(trial.malformed ?? {}).map(([reason, count]) =>
    text(
      "p",
      filled(gettext("Malformed: %(reason)s, %(count)s times, the last: %(last)s"), {
        reason,
        count,
        last: trial.last_malformed[reason]?.sample ?? "",
      }),
      "trial-malformed",
    ),
  );
  const nothing = !trial.errors && !trial.error && !trial.shown.length;
  return [
    ...errors.map((error) => text("p", error, "errornote")),
    ...(trial.hint ? [text("p", trial.hint, "trial-hint")] : []),
    ...(trial.proposed?.length ? proposal(trial.proposed) : []),
    ...(trial.shown?.length
      ? [text("p", filled(gettext("%(elements)s elements of %(bytes)s bytes; the first:"), trial)), table(trial.shown)]
      : []),
    ...(nothing
      ? [text("p", filled(gettext("No element came within five seconds (%(bytes)s bytes arrived)."), trial))]
      : []),
    ...malformed,
  ];
}

/** Return what shows other options for what came, and takes them over. */
function proposal(fields) {
  const listed = document.createElement("table");
  listed.append(...fields.map(({ label, value }) => row([label, value || gettext("empty")], "td")));
  listed.className = "trial-proposal";
  const use = /** @type {HTMLButtonElement} */ (text("button", gettext("Use these options"), "button"));
  use.type = "button";
  use.addEventListener("click", () => {
    for (const { name, value } of fields) form.elements[name].value = value;
    test();
  });
  const line = document.createElement("p");
  line.append(use);
  return [text("p", gettext("What came can be read better with these options:")), listed, line];
}

function table(elements) {
  const rows = elements.map((element) => [
    element.key,
    new Date(element.time_us / 1000).toISOString(),
    place(element),
    element.properties,
  ]);
  const head = row([gettext("key"), gettext("time"), gettext("place"), gettext("properties")], "th");
  const result = document.createElement("table");
  result.append(head, ...rows.map((cells) => row(cells, "td")));
  return result;
}

function place({ lo, hi }) {
  const low = lo.filter((value) => value !== null);
  const high = hi.filter((value) => value !== null);
  const point = low.every((value, axis) => value === high[axis]);
  const [from, to] = [low, high].map((corner) => corner.map(rounded).join(", "));
  return point ? from : filled(gettext("%(from)s to %(to)s"), { from, to });
}

function rounded(value) {
  return String(Math.round(value * 1e6) / 1e6);
}

function row(cells, kind) {
  const result = document.createElement("tr");
  result.append(...cells.map((cell) => text(kind, cell)));
  return result;
}

function show(...elements) {
  answer.replaceChildren(...elements);
}
