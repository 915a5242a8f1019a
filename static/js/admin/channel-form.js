// The form of a channel in the admin: it shows only the options of the chosen kind, and sends a test.

import { filled, gettext } from "../i18n.js";
import { followKinds, text } from "./kind-options.js";

const form = /** @type {any} */ (document.getElementById("channel_form"));
const answer = document.getElementById("trial-answer");
const button = /** @type {any} */ (document.getElementById("trial"));

followKinds(form);
button.addEventListener("click", test);

async function test() {
  button.disabled = true;
  answer.replaceChildren(text("p", gettext("Sending…")));
  try {
    const body = new FormData(form);
    body.set("channel", button.dataset.channel);
    const response = await fetch(button.dataset.address, { method: "POST", body });
    if (!response.ok) throw new Error(filled(gettext("the server answered %(status)s"), { status: response.status }));
    answer.replaceChildren(...told(await response.json()));
  } catch (error) {
    answer.replaceChildren(text("p", error.message, "errornote"));
  } finally {
    button.disabled = false;
  }
}

function told({ errors, error, sent }) {
  const wrong = Object.values(errors ?? {})
    .flat()
    .concat(error ?? []);
  return [...wrong.map((words) => text("p", words, "errornote")), ...(sent ? [text("p", sent, "trial-sent")] : [])];
}
