// The only module that talks to /reports/ over HTTP.

import { filled, gettext } from "../i18n.js";

const ROOT = "/reports/";

/** Return the address of a report. */
export function address(stream, parameters) {
  return `${ROOT}${encodeURIComponent(stream)}?${new URLSearchParams(parameters)}`;
}

/** Return a promise of a report as a document; it fails with the server's words. */
export async function ask(stream, parameters) {
  let response;
  try {
    response = await fetch(address(stream, parameters));
  } catch {
    throw new Error(gettext("The server cannot be reached. Try again in a moment."));
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok)
    throw new Error(
      answer.error ?? filled(gettext("The server answered with status %(status)s."), { status: response.status }),
    );
  return answer;
}
