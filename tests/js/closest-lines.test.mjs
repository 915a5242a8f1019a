import assert from "node:assert/strict";
import { test } from "node:test";
import { drawClosest } from "../../static/js/closest-lines.js";

/** A context that notes the texts that are drawn; a character is 6 px wide. */
class Context {
  texts = [];
  measureText(text) {
    return { width: 6 * text.length };
  }
  fillText(text, x, y) {
    this.texts.push([text, x, y]);
  }
  beginPath() {}
  moveTo() {}
  lineTo() {}
  arc() {}
  stroke() {}
  setLineDash() {}
  strokeText() {}
}

const VIEW = { view: { world: 1000, middle: 0.5, left: 0, top: 0 }, width: 1000, height: 1000, colours: ["red"], edge: "white" };
const pair = (lon, text) => ({ from: [[lon, 0], [lon + 1, 0]], places: [[lon, 0], [lon, 0.1]], colour: 0, text });

test("the texts of pairs do not lie on each other: the first of the pairs have theirs", () => {
  const context = new Context();
  drawClosest(context, [pair(0, "200 m in 3 min"), pair(5, "400 m in 5 min"), pair(90, "1 km in 9 min")], VIEW);
  assert.deepEqual(context.texts.map(([text]) => text), ["200 m in 3 min", "1 km in 9 min"]);
});
