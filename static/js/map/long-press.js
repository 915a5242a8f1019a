// Detects a finger that rests on something. Browsers differ in whether they report that as a right click.

const WAIT_MS = 550;
const SLACK_PX = 10;

/** Call `run` with the pointerdown event once a single finger has rested on an element for `WAIT_MS`. */
export function onLongPress(element, run) {
  let resting = null;
  const end = () => {
    clearTimeout(resting?.timer);
    resting = null;
  };
  element.addEventListener("pointerdown", (event) => {
    const alone = resting === null;
    end();
    if (event.pointerType !== "touch" || !event.isPrimary || !alone) return;
    resting = { x: event.clientX, y: event.clientY, timer: setTimeout(() => (end(), run(event)), WAIT_MS) };
  });
  element.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (resting && Math.hypot(clientX - resting.x, clientY - resting.y) > SLACK_PX) end();
  });
  for (const kind of ["pointerup", "pointercancel"]) element.addEventListener(kind, end);
}
