// The only module that talks to /reports/ over HTTP.

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
    throw new Error("The server cannot be reached. Try again in a moment.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `The server answered with status ${response.status}.`);
  return answer;
}
