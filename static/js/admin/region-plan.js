// The plan of the regions: draw a rectangle on it, and its corners become the area by which the space is cut anew.

const SVG = "http://www.w3.org/2000/svg";
const plan = /** @type {any} */ (document.getElementById("plan"));
const form = /** @type {any} */ (document.getElementById("cut-form"));

if (plan && form) listen();

function listen() {
  const bounds = plan.dataset.bounds.split(" ").map(Number);
  const drawn = document.createElementNS(SVG, "rect");
  drawn.setAttribute("class", "drawn");
  let start = null;
  plan.addEventListener("pointerdown", (event) => {
    start = placeOf(event);
    plan.setPointerCapture(event.pointerId);
    plan.append(drawn);
    event.preventDefault();
  });
  plan.addEventListener("pointermove", (event) => start && show(drawn, start, placeOf(event)));
  plan.addEventListener("pointerup", (event) => {
    if (!start) return;
    const end = placeOf(event);
    show(drawn, start, end);
    form.elements.area.value = corners(bounds, start, end).join(", ");
    form.elements.source.value = "area";
    start = null;
  });
}

/** Return where on the plan a pointer is, each axis from 0 to 1. */
function placeOf(event) {
  const box = plan.getBoundingClientRect();
  const part = (value, from, size) => Math.min(Math.max((value - from) / size, 0), 1);
  return [part(event.clientX, box.left, box.width), part(event.clientY, box.top, box.height)];
}

function show(drawn, /** @type {any[]} */ [x, y], /** @type {any[]} */ [toX, toY]) {
  const { width, height } = plan.viewBox.baseVal;
  const rectangle = {
    x: Math.min(x, toX) * width,
    y: Math.min(y, toY) * height,
    width: Math.abs(toX - x) * width,
    height: Math.abs(toY - y) * height,
  };
  for (const [name, value] of Object.entries(rectangle)) drawn.setAttribute(name, value);
}

/** Return the lower and the upper corner of a rectangle on the plan, in the coordinates of the space. */
function corners(bounds, start, end) {
  const axes = bounds.length / 2;
  const at = (axis, share) => bounds[axis] + share * (bounds[axes + axis] - bounds[axis]);
  const sides = (axis) =>
    [start, end].map((place) => at(axis, axis === 0 ? place[0] : 1 - place[1])).sort((a, b) => a - b);
  const found = Array.from({ length: axes }, (_, axis) => sides(axis));
  return [0, 1].flatMap((side) => found.map((pair) => Number(pair[side].toPrecision(6))));
}
