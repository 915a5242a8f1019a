// What notifications need of a browser.

import { gettext } from "../i18n.js";

/** Return why a browser cannot show notifications of this page, in words; an empty text if it can. */
export function problemOf({ isSecureContext, navigator, PushManager, Notification }) {
  if (!isSecureContext)
    return gettext("Notifications need https, or this machine's own address (127.0.0.1, localhost).");
  if (!navigator.serviceWorker || !PushManager || !Notification)
    return gettext("This browser cannot show notifications of pages.");
  return "";
}

/** Return the bytes of a text in base64url. */
export function bytesOf(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}
