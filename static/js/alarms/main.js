// The page of a user's alarms: it switches notifications in this browser on and off.

import { $, setText } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { severityText } from "../incidents/severities.js";
import { pageEvents } from "../page-events.js";
import { createTheme, isDark } from "../theme.js";
import { bytesOf, problemOf } from "./browser.js";

const { key, csrf, worker, base } = document.body.dataset;

let registration = null;

function say(words, state = "good") {
  $("browser-state").dataset.state = state;
  setText($("browser-state"), words);
}

async function ask(path, document) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrf };
  const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(document) });
  const answer = await response
    .json()
    .catch(() => ({ error: filled(gettext("the server answered %(status)s"), { status: response.status }) }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Show whether this browser gets alarms: `severity` from which on, or null. */
function show(severity) {
  $("browser").hidden = false;
  if (severity) $("severity").value = severity;
  setText($("on"), severity ? gettext("Change") : gettext("Notify me here"));
  $("off").hidden = $("test").hidden = !severity;
  const notified = () =>
    filled(gettext("This browser is notified of incidents from severity %(severity)s on."), {
      severity: severityText(severity),
    });
  say(severity ? notified() : gettext("This browser is not notified."));
}

async function look() {
  const problem = problemOf(window);
  if (problem) return say(problem, "bad");
  registration = await navigator.serviceWorker.register(worker);
  const subscription = await registration.pushManager.getSubscription();
  show(subscription ? (await ask("/known", { endpoint: subscription.endpoint })).severity : null);
}

async function switchOn() {
  say(gettext("Asking the browser…"));
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error(gettext("The browser does not allow notifications of this page; allow them in its settings."));
  }
  const options = { userVisibleOnly: true, applicationServerKey: bytesOf(key) };
  const subscription = await registration.pushManager.subscribe(options);
  show((await ask("", { subscription: subscription.toJSON(), severity: $("severity").value })).severity);
}

async function switchOff() {
  const subscription = await registration.pushManager.getSubscription();
  await ask("/forget", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
  show(null);
}

async function test() {
  const subscription = await registration.pushManager.getSubscription();
  say((await ask("/test", { endpoint: subscription.endpoint })).sent);
}

/** Return a listener that does something while its buttons rest, and says what went wrong. */
function doing(work) {
  return async (event) => {
    event.preventDefault();
    const buttons = [$("on"), $("off"), $("test")];
    for (const button of buttons) button.disabled = true;
    try {
      await work();
    } catch (error) {
      say(error.message, "bad");
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  };
}

function redraw() {
  setText($("theme"), isDark() ? gettext("Light theme") : gettext("Dark theme"));
}

pageEvents.on("theme", redraw);
createTheme($("theme"));
redraw();
if (key) {
  $("browser").addEventListener("submit", doing(switchOn));
  $("off").addEventListener("click", doing(switchOff));
  $("test").addEventListener("click", doing(test));
  look().catch((error) => say(error.message, "bad"));
}
