// What the form of a layer asks of a file after a look into it: the table, the reference system, the encoding and the key.

import { $, h, offer, setText } from "../dom.js";
import { count } from "../format.js";
import { filled, gettext } from "../i18n.js";

// The server looks into files of this size at most; a larger one would take long to be sent twice.
const LOOK_BYTES = 64 * 2 ** 20;
const FIELDS = ["table", "crs", "encoding", "key"];
const ALL = "*";
const BEYOND_ASCII = /[^\x20-\x7e]/;
const ENCODINGS = [
  ["utf-8", "UTF-8"],
  ["cp1252", "Windows-1252"],
  ["cp1250", "Windows-1250"],
  ["cp1251", "Windows-1251"],
  ["cp1253", "Windows-1253"],
  ["cp1254", "Windows-1254"],
  ["cp1257", "Windows-1257"],
  ["iso8859-2", "ISO 8859-2"],
  ["iso8859-15", "ISO 8859-15"],
  ["koi8-r", "KOI8-R"],
  ["cp437", "CP437"],
  ["cp850", "CP850"],
  ["shift_jis", "Shift JIS"],
  ["euc-kr", "EUC-KR"],
  ["gb18030", "GB 18030"],
  ["big5", "Big5"],
];

export class LayerQuestions {
  /**
   * @param {HTMLFormElement} form
   * @param {(fields: Record<string, any>, signal: AbortSignal) => Promise<Record<string, any>>} look asks the server what is in a file
   */
  constructor(form, look) {
    this.fields = Object.fromEntries(FIELDS.map((name) => [name, form.elements[name]]));
    this.look = look;
    for (const name of ["table", "encoding"]) this.fields[name].addEventListener("change", () => this.#look());
  }

  /** Look into a file, and show the questions that it leaves open. */
  ask(file) {
    this.stop();
    this.file = file;
    for (const name of FIELDS) {
      this.#show(name, false);
      this.fields[name].value = "";
    }
    this.asked = false;
    this.#preview([], []);
    if (file.size <= LOOK_BYTES) return this.#look();
    this.#all();
    return this.#say(gettext("The file is too large to look into it before its import."));
  }

  /** Stop looking. */
  stop() {
    this.looking?.abort();
    this.looking = null;
  }

  /** Return the fields that are answered. */
  answers() {
    const answered = FIELDS.map((name) => [name, this.fields[name].value.trim()]);
    return Object.fromEntries(answered.filter(([name, value]) => value && !this.#field(name).hidden));
  }

  async #look() {
    this.stop();
    const looking = (this.looking = new AbortController());
    this.#say(gettext("Looking into the file ..."));
    try {
      const seen = await this.look({ file: this.file, ...this.answers() }, looking.signal);
      if (this.looking !== looking) return;
      this.#say([...(seen.notes.length > 0 ? [gettext("The file:")] : []), ...seen.notes].join(" "));
      this.#offer(seen);
    } catch (error) {
      if (this.looking !== looking) return;
      this.#say(error.message);
      this.#all();
    }
  }

  /** @param {Record<string, any>} seen What the server saw in the file. */
  #offer({ tables, table, crs, encoded, columns, rows, notes }) {
    if (!this.asked) {
      this.#show("table", tables.length > 1);
      if (tables.length > 1) this.#offerTables(tables, table);
      this.#show("crs", crs === null);
      const odd = notes.length > 0 || BEYOND_ASCII.test(JSON.stringify([columns, rows]));
      this.#show("encoding", encoded && odd);
      this.#offerEncodings();
    }
    this.asked = true;
    const chosen = this.fields.key.value;
    this.#show("key", columns.length > 0);
    offer(
      this.fields.key,
      [["", [["", gettext("its own id, or its number")], ...columns.map((name) => [name, name])]]],
      columns.includes(chosen) ? chosen : "",
    );
    this.#preview(columns, rows);
  }

  #offerTables(tables, table) {
    const named = tables.map(({ name, features }) => [
      name,
      features === null ? name : filled(gettext("%(name)s (%(count)s)"), { name, count: count(features) }),
    ]);
    const all = [ALL, gettext("all as one layer")];
    offer(this.fields.table, [["", [...named, all]]], table || named[0][0]);
  }

  #offerEncodings() {
    offer(this.fields.encoding, [["", [["", gettext("as the file says, or as it looks")], ...ENCODINGS]]], "");
  }

  /** Show the questions whose answer can be given without a look. */
  #all() {
    this.#offerEncodings();
    for (const name of ["crs", "encoding"]) this.#show(name, true);
  }

  #preview(columns, rows) {
    const preview = $("layer-preview");
    preview.hidden = rows.length === 0 || columns.length === 0;
    preview.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", {}, shown(value)))))),
      ),
    );
  }

  #field(name) {
    return this.fields[name].closest(".field");
  }

  #show(name, visible) {
    this.#field(name).hidden = !visible;
  }

  #say(text) {
    setText($("layer-looking"), text);
    $("layer-looking").hidden = !text;
  }
}

function shown(value) {
  if (value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
