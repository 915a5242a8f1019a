// The form of a stream in the admin: it shows only the options of the chosen kinds, and tests what is filled in.

const form = document.getElementById("stream_form");
const answer = document.getElementById("trial-answer");

for (const select of form.querySelectorAll("select[data-options-of]")) {
  const show = () => showOptions(select.dataset.optionsOf, select.value);
  select.addEventListener("change", show);
  show();
}
const button = document.getElementById("trial");
button.addEventListener("click", test);

function showOptions(part, kind) {
  let declared = false;
  for (const row of rowsOf(`field-${part}__`)) {
    const wanted = nameOf(row, `field-${part}__`).startsWith(`field-${part}__${kind}__`);
    declared ||= wanted;
    row.hidden = !wanted;
    for (const input of row.querySelectorAll("input, select, textarea")) input.disabled = !wanted;
  }
  // A kind from another package may declare no options; they are then one JSON object, as are options that a kind does not declare.
  for (const row of rowsOf(`field-${part}_options`)) {
    const text = row.querySelector("textarea")?.value.trim() ?? "";
    row.hidden = (declared || !kind) && ["", "{}"].includes(text);
  }
}

function rowsOf(prefix) {
  return [...form.querySelectorAll(".form-row")].filter((row) => nameOf(row, prefix));
}

function nameOf(row, prefix) {
  return [...row.classList].find((name) => name.startsWith(prefix)) ?? "";
}

async function test() {
  button.disabled = true;
  show(text("p", "Reading…"));
  try {
    const body = new FormData(form);
    if (!body.has("space")) body.set("space", button.dataset.space); // a saved stream keeps its space, so the form has no such field
    const response = await fetch(button.dataset.address, { method: "POST", body });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    show(...told(await response.json()));
  } catch (error) {
    show(text("p", error.message, "errornote"));
  } finally {
    button.disabled = false;
  }
}

function told(trial) {
  const errors = Object.values(trial.errors ?? {}).flat().concat(trial.error ?? []);
  const malformed = Object.entries(trial.malformed ?? {}).map(([reason, count]) =>
    text("p", `Malformed: ${reason}, ${count} times, the last: ${trial.last_malformed[reason]?.sample ?? ""}`, "trial-malformed"));
  const nothing = !trial.errors && !trial.error && !trial.shown.length;
  return [
    ...errors.map((error) => text("p", error, "errornote")),
    ...(trial.hint ? [text("p", trial.hint, "trial-hint")] : []),
    ...(trial.shown?.length ? [text("p", `${trial.elements} elements of ${trial.bytes} bytes; the first:`), table(trial.shown)] : []),
    ...(nothing ? [text("p", `No element came within five seconds (${trial.bytes} bytes arrived).`)] : []),
    ...malformed,
  ];
}

function table(elements) {
  const rows = elements.map((element) => [element.key, new Date(element.time_us / 1000).toISOString(), place(element), element.properties]);
  const head = row(["key", "time", "place", "properties"], "th");
  const result = document.createElement("table");
  result.append(head, ...rows.map((cells) => row(cells, "td")));
  return result;
}

function place({ lo, hi }) {
  const low = lo.filter((value) => value !== null);
  const high = hi.filter((value) => value !== null);
  const point = low.every((value, axis) => value === high[axis]);
  return point ? low.map(rounded).join(", ") : `${low.map(rounded).join(", ")} to ${high.map(rounded).join(", ")}`;
}

function rounded(value) {
  return String(Math.round(value * 1e6) / 1e6);
}

function row(cells, kind) {
  const result = document.createElement("tr");
  result.append(...cells.map((cell) => text(kind, cell)));
  return result;
}

function text(kind, words, name = "") {
  const element = document.createElement(kind);
  element.textContent = words;
  element.className = name;
  return element;
}

function show(...elements) {
  answer.replaceChildren(...elements);
}
