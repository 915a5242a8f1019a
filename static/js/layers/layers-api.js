// The only module that talks to /layers/ over HTTP.

import { filled, gettext } from "../i18n.js";

const ROOT = "/layers/";

/** An error that the server answered with; `status` is 0 if there was no answer. */
class LayerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class LayersApi {
  /** @param {string} csrf token of the page */
  constructor(csrf) {
    this.csrf = csrf;
  }

  /** Return all layers, then those whose first import, by this user, was refused; they have the status `failed` and no version. */
  async list() {
    const { layers, refused } = await this.#ask("GET", "");
    return [...layers, ...refused];
  }

  /**
   * Upload a file. Return `{done, abort}`, where `done` is a promise of the layer that is being imported.
   *
   * @param {Record<string, any>} fields `file`, `name`, `title`
   * @param {(...values: any[]) => any} onProgress called with the share that has arrived
   */
  upload(fields, onProgress) {
    const request = new XMLHttpRequest(); // fetch does not report the progress of an upload
    const done = new Promise((resolve, reject) => {
      request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
      request.onload = () => {
        const answer = parsed(request.responseText);
        if (request.status === 202 && answer.layer) resolve(answer.layer);
        else reject(new LayerError(request.status, answer.error ?? refusal(request.status)));
      };
      request.onerror = () => reject(new LayerError(0, gettext("The upload was interrupted. Try again in a moment.")));
      request.onabort = () => reject(new LayerError(0, ""));
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      request.open("POST", ROOT);
      request.setRequestHeader("X-CSRFToken", this.csrf);
      request.send(form);
    });
    return { done, abort: () => request.abort() };
  }

  /** Ask what is in a file before its import: `tables`, `table`, `crs`, `encoded`, `columns`, `rows`, `notes`; `fields` as for `upload`. */
  look(fields, signal) {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    return this.#ask("POST", "?look", { body, signal });
  }

  cancel(name) {
    return this.#ask("POST", `${name}/cancel`);
  }

  /** Show a layer to a team, given its number, or to everybody (null). */
  share(name, team) {
    return this.#ask("POST", `${name}/share`, {
      body: JSON.stringify({ team }),
      headers: { "Content-Type": "application/json" },
    });
  }

  /** Draw a layer in another look, for everybody. */
  drawAs(name, look) {
    return this.#ask("POST", `${name}/look`, {
      body: JSON.stringify({ look }),
      headers: { "Content-Type": "application/json" },
    });
  }

  remove(name) {
    return this.#ask("DELETE", name);
  }

  /** Features as GeoJSON; `asked` may hold `version`, `bbox`, `zoom`, `key`, `find`. */
  features(name, asked, signal) {
    return this.#ask("GET", `${name}/features?${new URLSearchParams(asked)}`, { signal });
  }

  /** Save an edit `{version, upsert, remove}`. Return the number of the new version. */
  async edit(name, edit) {
    const headers = { "Content-Type": "application/json" };
    return (await this.#ask("PATCH", `${name}/features`, { body: JSON.stringify(edit), headers })).version;
  }

  async #ask(method, path, /** @type {Record<string, any>} */ { headers = {}, ...options } = {}) {
    let response;
    try {
      response = await fetch(ROOT + path, { method, headers: { "X-CSRFToken": this.csrf, ...headers }, ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new LayerError(0, gettext("The server cannot be reached. Try again in a moment."));
    }
    const answer = parsed(await response.text());
    if (!response.ok) throw new LayerError(response.status, answer.error ?? refusal(response.status));
    return answer;
  }
}

function refusal(status) {
  return status === 413
    ? gettext("The file is too large for this server.")
    : filled(gettext("The server answered with status %(status)s."), { status });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
