// The dialog of saved views and share links: save what the map shows, open, rename, share and delete it.

import { confirmed } from "../confirm.js";
import { $, h, icon, offer, setText } from "../dom.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { mayShare, sharedText, teamChoices, teamOf } from "./rights.js";

const HOURS = [
  [1, gettext("1 hour")],
  [24, gettext("1 day")],
  [168, gettext("1 week")],
  [720, gettext("30 days")],
];

export class ViewsPanel {
  store;
  ask;
  address;
  open;

  /**
   * @param {Record<string, any>} parts `store`; `ask(message)`, which returns a promise of the reply; `address()`, the hash of the present view;
   *   `open(view)`, which shows a saved view; `onError(text)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.dialog = $("views-dialog");
    this.form = $("views-form");
    this.linkForm = $("link-form");
    $("views-open").addEventListener("click", () => this.start());
    $("views-menu").addEventListener("click", (event) => {
      event.target.closest("details").open = false;
      this.start();
    });
    $("views-close").addEventListener("click", () => this.dialog.close());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.linkForm.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#makeLink();
    });
    $("link-copy").addEventListener("click", () => this.#copy());
    this.views = [];
    this.links = [];
    this.renaming = false; // while somebody types a new name, the list stays as it is
  }

  /** Open the dialog. */
  async start() {
    setText($("views-error"), "");
    this.renaming = false;
    $("link-made").hidden = true;
    offer(this.form.elements.team, [["", [["", gettext("only me")], ...teamChoices(this.store)]]], "");
    this.form.elements.team.closest("label").hidden = teamChoices(this.store).length === 0;
    offer(this.linkForm.elements.hours, [["", HOURS.map(([hours, text]) => [String(hours), text])]], "24");
    this.#offerQueries();
    this.dialog.showModal();
    this.form.elements.name.focus();
    await this.#load();
  }

  /** Take note of a message of the server. */
  follow({ type }) {
    if (["saved.changed", "team.list", "hello"].includes(type) && this.dialog.open) this.#load();
  }

  /** The numbers of the queries, and the names of the layers, that the map shows. */
  #shown() {
    const queries = this.store
      .listed()
      .filter(({ shown }) => shown)
      .map(({ query }) => query);
    const layers = [...this.store.layers.values()].filter(({ shown }) => shown).map(({ name }) => name);
    return { queries: queries.slice(0, 1000), layers };
  }

  async #load() {
    const [views, links] = [await this.#tried({ type: "saved.list" }), await this.#tried({ type: "link.list" })];
    if (views) this.views = views.views;
    if (links) this.links = links.links;
    this.#render();
  }

  async #save() {
    const name = this.form.elements.name.value.trim();
    if (!name) return setText($("views-error"), gettext("Type a name for the view."));
    const team = teamOf(this.form.elements.team.value);
    const reply = await this.#tried({ type: "saved.add", name, address: this.address(), ...this.#shown(), team });
    if (!reply) return;
    this.form.reset();
    this.views = reply.views;
    this.#render();
  }

  #render() {
    if (this.renaming) return;
    $("views-none").hidden = this.views.length > 0;
    $("views-list").replaceChildren(...this.views.map((view) => this.#row(view)));
    $("links-none").hidden = this.links.length > 0;
    $("links-list").replaceChildren(...this.links.map((link) => this.#linkRow(link)));
  }

  #row(view) {
    const open = h("button", { type: "button", class: "view-name", onclick: () => this.#open(view) }, view.name);
    const choices = view.editable ? teamChoices(this.store, view.team) : [];
    const about = [
      view.mine ? "" : filled(gettext("by %(name)s"), { name: view.owner }),
      choices.length > 0 ? "" : sharedText(this.store, view),
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
    const change = (fields) => this.#change({ type: "saved.edit", view: view.view, ...fields });
    const named = (text) => filled(text, view);
    const button = (symbol, text, label, run, kind = "") =>
      h(
        "button",
        { type: "button", class: `quiet small icon ${kind}`, "aria-label": label, title: text, onclick: run },
        icon(symbol),
      );
    const actions = [
      button("edit", gettext("Rename"), named(gettext("Rename %(name)s")), () => this.#rename(row, view)),
      button(
        "save",
        gettext("Replace by what the map shows now"),
        named(gettext("Replace by what the map shows now %(name)s")),
        () => change({ address: this.address(), ...this.#shown() }),
      ),
      button(
        "trash",
        gettext("Delete"),
        named(gettext("Delete %(name)s")),
        async () => {
          const question = view.team
            ? gettext("Delete the view “%(name)s” for the whole team?")
            : gettext("Delete the view “%(name)s”?");
          if (await confirmed(named(question), gettext("Delete")))
            this.#change({ type: "saved.delete", view: view.view });
        },
        "danger",
      ),
    ];
    const teams = h(
      "select",
      { "aria-label": named(gettext("Who sees %(name)s")), disabled: !mayShare(this.store, view) },
      new Option(gettext("only me"), ""),
      ...choices.map(([value, text]) => new Option(text, value)),
    );
    teams.value = view.team === null ? "" : String(view.team);
    teams.addEventListener("change", () => change({ team: teamOf(teams.value) }));
    const row = h(
      "li",
      { class: "view-row" },
      h("div", { class: "view-text" }, open, about ? h("span", { class: "hint" }, about) : null),
      choices.length > 0 ? teams : null,
      ...(view.editable ? actions : []),
    );
    return row;
  }

  #rename(row, view) {
    const input = h("input", { type: "text", maxlength: "120", value: view.name, "aria-label": gettext("New name") });
    const form = h(
      "form",
      { class: "view-rename" },
      input,
      h("button", { type: "submit", class: "small primary" }, gettext("Rename")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.renaming = false;
      if (input.value.trim()) this.#change({ type: "saved.edit", view: view.view, name: input.value.trim() });
      else this.#render();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // Escape ends the renaming, not the dialog
      this.renaming = false;
      this.#render();
    });
    this.renaming = true;
    row.querySelector(".view-text").replaceChildren(form);
    input.select();
  }

  async #change(message) {
    this.renaming = false; // another action ends it
    const reply = await this.#tried(message);
    if (reply) this.views = reply.views;
    this.#render();
  }

  #open(view) {
    this.dialog.close();
    this.open(view);
  }

  #offerQueries() {
    const queries = this.store.listed().filter((query) => mayShare(this.store, query) && !query.example);
    // None is chosen beforehand: a link publishes only what somebody meant.
    const box = ({ query, name }) =>
      h(
        "label",
        { class: "choice" },
        h("input", { type: "checkbox", name: "query", value: query }),
        h("span", {}, name),
      );
    $("link-queries").replaceChildren(...queries.map(box));
    $("link-possible").hidden = queries.length === 0;
    $("link-impossible").hidden = queries.length > 0;
  }

  async #makeLink() {
    const { elements } = this.linkForm;
    const queries = [...this.linkForm.querySelectorAll("[name=query]:checked")].map(({ value }) => Number(value));
    const name = elements.name.value.trim();
    if (!name) return setText($("link-error"), gettext("Type a name for the link."));
    if (queries.length === 0) return setText($("link-error"), gettext("Choose at least one query."));
    setText($("link-error"), "");
    const message = { type: "link.add", name, queries, hours: Number(elements.hours.value), address: this.address() };
    const reply = await this.#tried(message, $("link-error"));
    if (!reply) return;
    $("link-made").hidden = false;
    $("link-url").value = reply.url;
    $("link-url").select();
    elements.name.value = "";
    await this.#load();
  }

  async #copy() {
    $("link-url").select();
    try {
      await navigator.clipboard.writeText($("link-url").value);
      setText($("link-copied"), gettext("Copied."));
    } catch {
      setText($("link-copied"), gettext("Press Ctrl+C to copy it.")); // browsers copy on secure pages only
    }
  }

  #linkRow(link) {
    const ends = new Date(link.expires);
    const revoke = h(
      "button",
      { type: "button", class: "small danger", "aria-label": filled(gettext("Revoke %(name)s"), link) },
      gettext("Revoke"),
    );
    revoke.addEventListener("click", async () => {
      const reply = await this.#tried({ type: "link.revoke", link: link.link });
      if (reply) this.links = reply.links;
      this.#render();
    });
    const queries = filled(ngettext("%(count)s query", "%(count)s queries", link.queries.length), {
      count: link.queries.length,
    });
    const until = filled(gettext("until %(time)s UTC"), { time: ends.toISOString().slice(0, 16).replace("T", " ") });
    const about = [sharedText(this.store, link), queries, until];
    return h(
      "li",
      { class: "view-row" },
      h(
        "div",
        { class: "view-text" },
        h("span", {}, link.name),
        h("span", { class: "hint" }, about.filter(Boolean).join(" \u00b7 ")),
      ),
      revoke,
    );
  }

  async #tried(message, place = $("views-error")) {
    try {
      setText(place, "");
      return await this.ask(message);
    } catch (error) {
      setText(place, error.message);
      return null;
    }
  }
}
