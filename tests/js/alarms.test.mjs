// What the page of alarms needs of a browser.

import assert from "node:assert/strict";
import test from "node:test";

import { bytesOf, problemOf } from "../../static/js/alarms/browser.js";

const ABLE = { isSecureContext: true, navigator: { serviceWorker: {} }, PushManager: class {}, Notification: class {} };

test("a browser that can show notifications has no problem", () => assert.equal(problemOf(ABLE), ""));

test("a page without TLS is told why, and so is a browser that cannot", () => {
  assert.match(problemOf({ ...ABLE, isSecureContext: false }), /need https/);
  for (const lack of ["PushManager", "Notification"])
    assert.match(problemOf({ ...ABLE, [lack]: undefined }), /cannot show/);
  assert.match(problemOf({ ...ABLE, navigator: {} }), /cannot show/);
});

test("base64url without padding gives its bytes", () => {
  const bytes = Uint8Array.from({ length: 65 }, (_, index) => (index * 37) % 256);
  assert.deepEqual(bytesOf(Buffer.from(bytes).toString("base64url")), bytes);
});
