// The list of layers, with the state of each, whether it is drawn, and its actions; and the form that adds a layer.

import { $, coalesced, h, icon, offer, setText } from "../dom.js";
import { mayEdit, mayShare, sharedText, teamChoices, teamOf } from "../teams/rights.js";
import { chosenTeam, showTeams } from "../teams/team-fields.js";
import { count, geometryTypes, layerName, layerTitle, pairedText } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { createLookField } from "../look-field.js";
import { LAYER_COLOURS } from "../looks.js";
import { LayerQuestions } from "./layer-questions.js";
import { stateText } from "../states.js";

const REFRESH_MS = 100;
const PROBLEMS_SHOWN = 100;

/** @param {Record<string, any>} actions `show`, `zoom`, `join`, `count`, `drawPoint`, `drawLine`, `drawPolygon`, `cancel`, `remove`: functions of a layer; `share(layer, team)`; `look(layer, look)` */
export function createLayerList(store, actions) {
  const rows = new Map();
  const list = $("layer-list");
  const render = () => {
    for (const [name, row] of rows) {
      if (store.layers.has(name)) continue;
      row.element.remove();
      rows.delete(name);
    }
    for (const layer of store.layers.values()) {
      if (!rows.has(layer.name)) {
        const row = createRow(store, layer.name, actions);
        rows.set(layer.name, row);
        list.append(row.element);
      }
      rows.get(layer.name).update(layer);
    }
    $("layers-empty").hidden = store.layers.size > 0;
  };
  store.on("layers queries pairs teams", coalesced(render, REFRESH_MS));
  render();
}

function createRow(store, name, actions) {
  const act = (action) => () => actions[action](store.layers.get(name));
  const button = (action, symbol, text, kind = "") =>
    h(
      "button",
      { type: "button", class: `quiet small ${kind}`, onclick: act(action), "data-action": action },
      icon(symbol),
      h("span", {}, text),
    );
  const parts = {
    swatch: h("button", { type: "button", class: "swatch layer-swatch", onclick: act("show") }, icon("eye")),
    title: h("span", { class: "query-name" }),
    about: h("span", { class: "query-about" }),
    status: h("span", { class: "pill" }),
    progress: h("div", { class: "progress-row", hidden: true }),
    bar: h("progress", { max: "1", "aria-label": gettext("Import") }),
    error: h("p", { class: "field-error", role: "alert", hidden: true }),
    truncated: h("p", { class: "query-note hint", hidden: true }),
    paired: h("p", { class: "query-note hint", hidden: true }),
    problems: h("details", { class: "problems", hidden: true }),
  };
  parts.progress.append(parts.bar, button("cancel", "close", gettext("Cancel")));
  const needsVersion = [
    button("zoom", "zoom", gettext("Zoom to")),
    button("join", "join", gettext("Join")),
    button("count", "count", gettext("Colour by count")),
    button("drawPoint", "point", gettext("Add point")),
    button("drawLine", "line", gettext("Add line")),
    button("drawPolygon", "polygon", gettext("Add polygon")),
  ];
  Object.assign(parts, choicesOf(store, name, actions));
  const menu = h(
    "div",
    { class: "query-actions", id: `layer-actions-${name}`, hidden: true },
    ...needsVersion,
    button("remove", "trash", gettext("Delete"), "danger"),
    parts.team,
    parts.look.element,
  );
  const open = h(
    "button",
    { type: "button", class: "query-main quiet", "aria-expanded": "false", "aria-controls": menu.id },
    h("span", { class: "query-text" }, parts.title, parts.about),
    parts.status,
  );
  open.addEventListener("click", () => {
    menu.hidden = !menu.hidden;
    open.setAttribute("aria-expanded", String(!menu.hidden));
  });
  const element = h(
    "li",
    { class: "query layer", "data-layer": name },
    h("div", { class: "query-row" }, parts.swatch, open),
    parts.progress,
    parts.paired,
    parts.truncated,
    parts.error,
    parts.problems,
    menu,
  );
  return { element, update: (layer) => update(store, layer, store.joinsOf(name), element, parts, needsVersion) };
}

/** Return the fields of a layer's menu: who sees it, and how it is drawn. */
function choicesOf(store, name, actions) {
  const team = h("select", { class: "layer-team", "aria-label": filled(gettext("Who sees %(name)s"), { name }) });
  team.addEventListener("change", () => actions.share(store.layers.get(name), teamOf(team.value)));
  const onChoose = (look) => actions.look(store.layers.get(name), look);
  return { team, look: createLookField({ colours: LAYER_COLOURS, variable: "layer", onChoose }) };
}

function update(store, layer, joins, element, parts, needsVersion) {
  const { status, version } = layer;
  element.dataset.status = status;
  element.dataset.shown = layer.shown;
  parts.swatch.style.setProperty("--colour", `var(--layer${layer.colour})`);
  element.dataset.line = layer.line;
  parts.look.show(layer.look ?? null);
  parts.look.element.hidden = !mayEdit(store, mineOf(store, layer)) || version === null;
  parts.swatch.setAttribute(
    "aria-label",
    filled(layer.shown ? gettext("Hide %(name)s on the map") : gettext("Show %(name)s on the map"), {
      name: layer.title,
    }),
  );
  parts.swatch.setAttribute("aria-pressed", String(layer.shown));
  parts.swatch.disabled = version === null;
  for (const button of needsVersion) button.hidden = version === null;
  const byCount = element.querySelector("[data-action=count]");
  byCount.setAttribute("aria-pressed", String(Boolean(layer.byCount)));
  setText(parts.title, layer.title);
  setText(parts.about, [describe(layer), sharedText(store, layer)].filter(Boolean).join(" \u00b7 "));
  showTeam(store, layer, parts.team);
  setText(parts.status, stateText(status));
  parts.status.dataset.status = { ready: "running", importing: "pending" }[status] ?? status;
  parts.status.hidden = status === "ready";
  parts.progress.hidden = status !== "importing";
  parts.bar.value = layer.progress;
  parts.error.hidden = !layer.error;
  setText(parts.error, layer.error ?? "");
  parts.truncated.hidden = !layer.shown || !layer.truncated;
  setText(parts.truncated, gettext("Only the largest 5,000 features in view are drawn. Zoom in for all."));
  parts.paired.hidden = joins.length === 0;
  setText(parts.paired, pairedText(joins));
  showProblems(parts.problems, layer);
}

function mineOf(store, layer) {
  return { team: layer.team, mine: layer.owner === store.user };
}

/** Offer the teams of the user, and everybody; nothing to users who are in no team. */
function showTeam(store, layer, select) {
  const mine = mineOf(store, layer);
  const choices = teamChoices(store, layer.team ?? null);
  const named = choices.map(([team, name]) => [team, filled(gettext("team %(name)s"), { name })]);
  offer(select, [["", [["", gettext("everybody sees it")], ...named]]], layer.team ? String(layer.team) : "");
  select.hidden = choices.length === 0 || !mayShare(store, mine) || layer.version === null;
}

function describe({ name, title, version, features, geometry_types: types, status, progress }) {
  const parts = title === name ? [] : [name];
  if (status === "importing") parts.push(progress > 0 ? importText(progress) : gettext("waiting to be imported"));
  if (version === null) return parts.join(" \u00b7 ");
  return [
    ...parts,
    `${count(features)} ${geometryTypes(types, features)}`,
    filled(gettext("version %(version)s"), { version }),
  ].join(" \u00b7 ");
}

function importText(progress) {
  return filled(gettext("importing, %(share)s %"), { share: Math.round(100 * progress) });
}

function problemsWords(total) {
  return ngettext(
    "%(count)s row was repaired, cut or left out",
    "%(count)s rows were repaired, cut or left out",
    total,
  );
}

function showProblems(details, { problems = [], problem_count: total = problems.length }) {
  details.hidden = total === 0 && problems.length === 0;
  const wanted = JSON.stringify(problems);
  if (details.dataset.problems === wanted) return;
  details.dataset.problems = wanted;
  const shown = problems.slice(0, PROBLEMS_SHOWN);
  const more = total - shown.filter(({ row }) => row !== null).length;
  details.replaceChildren(
    h("summary", {}, total > 0 ? filled(problemsWords(total), { count: count(total) }) : gettext("About the file")),
    h(
      "ul",
      {},
      ...shown.map(({ row, reason }) => h("li", {}, h("b", {}, rowText(row)), ` ${reason}`)),
      more > 0 ? h("li", {}, filled(gettext("and %(count)s more"), { count: count(more) })) : null,
    ),
  );
}

function rowText(row) {
  return row === null ? gettext("The file:") : filled(gettext("Row %(number)s"), { number: count(row) });
}

export class LayerForm {
  store;
  mostBytes;
  upload;
  look;
  names;
  onOpen;
  onDone;

  /**
   * @param {Record<string, any>} parts `store`; `mostBytes`, the largest size of a file; `upload(fields, onProgress)`, returning `{done, abort}`;
   *   `look(fields, signal)`, a promise of what is in the file; `names()`; `onOpen()`; `onDone(layer)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("layer-form");
    const { elements } = this.form;
    $("layer-add").addEventListener("click", () => elements.file.click());
    elements.file.addEventListener(
      "change",
      () => elements.file.files.length > 0 && this.offer(elements.file.files[0]),
    );
    this.questions = new LayerQuestions(this.form, this.look);
    $("layer-cancel").addEventListener("click", () => this.close());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    for (const field of ["name", "title"]) elements[field].addEventListener("input", () => this.#showKnown());
    this.#acceptDrops($("map-area"));
    this.#acceptDrops($("pane-layers"));
  }

  get open() {
    return !this.form.hidden;
  }

  /** Propose to import a file. */
  offer(file) {
    if (this.upload_) return;
    const { elements } = this.form;
    this.file = file;
    elements.name.value = layerName(file.name);
    elements.title.value = layerTitle(file.name);
    setText($("layer-file"), `${file.name}, ${count(Math.max(1, file.size / 1024))} KiB`);
    this.#error("");
    showTeams(this.form, this.store, null, gettext("everybody"));
    this.#showKnown();
    this.form.hidden = false;
    $("layer-add").hidden = true;
    this.onOpen();
    this.questions.ask(file);
    this.form.scrollIntoView({ block: "nearest" });
    elements.title.focus({ preventScroll: true });
  }

  /** Close the form; an upload that is on its way ends. */
  close() {
    this.upload_?.abort();
    this.questions.stop();
    this.form.hidden = true;
    this.form.reset();
    this.file = null;
    $("layer-add").hidden = false;
  }

  async #send() {
    const { elements } = this.form;
    if (this.file.size > this.mostBytes) {
      // The server would break off the upload without an answer.
      const words = gettext("A file may have at most %(most)s bytes; this one has %(count)s.");
      return this.#error(filled(words, { most: count(this.mostBytes), count: count(this.file.size) }));
    }
    const { team } = chosenTeam(this.form);
    const fields = {
      file: this.file,
      name: elements.name.value.trim(),
      title: elements.title.value.trim(),
      ...(team && { team }),
      ...this.questions.answers(),
    };
    this.#error("");
    this.#busy(true);
    this.upload_ = this.upload(fields, (share) => ($("layer-progress").value = share));
    try {
      const layer = await this.upload_.done;
      this.upload_ = null;
      this.close();
      this.onDone(layer);
    } catch (error) {
      this.#error(error.message);
    } finally {
      this.upload_ = null;
      this.#busy(false);
    }
  }

  #busy(busy) {
    const { elements } = this.form;
    $("layer-progress").hidden = !busy;
    $("layer-progress").value = 0;
    for (const field of [elements.name, elements.title, $("layer-save")]) field.disabled = busy;
  }

  #showKnown() {
    $("layer-known").hidden = !this.names().includes(this.form.elements.name.value.trim());
  }

  #error(text) {
    setText($("layer-error"), text);
    $("layer-error").hidden = !text;
    if (text) this.form.scrollIntoView({ block: "end" });
  }

  #acceptDrops(area) {
    let depth = 0; // a drag enters and leaves every element of the area
    const mark = (change) => {
      depth = change === 0 ? 0 : Math.max(0, depth + change);
      $("map-area").classList.toggle("dropping", depth > 0);
    };
    const withFiles = (run) => (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      run(event);
    };
    area.addEventListener(
      "dragenter",
      withFiles(() => mark(1)),
    );
    area.addEventListener(
      "dragover",
      withFiles((event) => (event.dataTransfer.dropEffect = "copy")),
    );
    area.addEventListener(
      "dragleave",
      withFiles(() => mark(-1)),
    );
    area.addEventListener(
      "drop",
      withFiles(({ dataTransfer }) => {
        mark(0);
        if (dataTransfer.files.length > 0) this.offer(dataTransfer.files[0]);
      }),
    );
  }
}
