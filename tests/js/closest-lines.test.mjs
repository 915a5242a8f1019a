import assert from "node:assert/strict";
import { test } from "node:test";
import { drawClosest } from "../../static/js/kinds/closest_approach/drawing.js";

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

const VIEW = {
  view: { world: 1000, middle: 0.5, left: 0, top: 0 },
  width: 1000,
  height: 1000,
  colours: ["red"],
  edge: "white",
};
const pair = (lon, text) => ({
  from: [
    [lon, -40],
    [lon + 1, -40],
  ],
  places: [
    [lon, 0],
    [lon, 0.1],
  ],
  colour: 0,
  text,
});

test("the texts of pairs do not lie on each other: the first of the pairs have theirs", () => {
  const context = new Context();
  drawClosest(
    context,
    [pair(0, "200 m in 3 min"), pair(-6, "400 m in 5 min"), pair(3, "800 m in 6 min"), pair(90, "1 km in 9 min")],
    VIEW,
  );
  const [first, second, third] = context.texts;
  assert.deepEqual(
    context.texts.map(([text]) => text),
    ["200 m in 3 min", "400 m in 5 min", "1 km in 9 min"],
  );
  assert.ok(first[1] > 500 && second[1] + 84 < 483 && third[1] > 750); // the second to the left of its pair
});

test("a text does not lie on the symbols of a pair", () => {
  const context = new Context();
  const away = {
    ...pair(0, "200 m in 3 min"),
    from: [
      [10, 2],
      [-60, 0],
    ],
  };
  drawClosest(context, [away], VIEW);
  assert.ok(context.texts[0][1] + 84 < 500); // to the left of it: to the right there is a ship
});
