// A handle on a picture: dragged by pointer, moved by keys, and told to screen readers.
import { s, set } from "./dom.js";
import { decimal } from "./format.js";

const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

/**
 * Return a handle in an SVG picture.
 *
 * `drag(x)` hears where the pointer is, in the picture's pixels; `step(k)` how many steps a key
 * asks for, -Infinity and Infinity for the ends. `place(x, {low, high, value, text})` moves it.
 */
export function handle({ test, label, top, bottom, grip, drag, step, svg }) {
  const node = s("g", { class: "handle", role: "slider", tabindex: 0, "aria-label": label, "data-test": test },
    s("line", { class: "stem", y1: top, y2: bottom }),
    s("circle", { class: "hit", cy: grip, r: 22 }),
    s("circle", { class: "ring", cy: grip, r: 13 }),
    s("circle", { class: "grip", cy: grip, r: 8 }));
  let dragging = false, last = 0; // where the pointer was: a drag that is cut short ends there
  const where = (event) => (last = event.clientX - svg().getBoundingClientRect().left);
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || node.getAttribute("aria-disabled") === "true") return;
    dragging = true;
    where(event);
    node.setPointerCapture(event.pointerId);
    node.classList.add("held");
    node.focus({ preventScroll: true });
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (dragging) drag(where(event));
  });
  const drop = () => {
    if (!dragging) return;
    dragging = false;
    node.classList.remove("held");
    drag(last);
  };
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) node.addEventListener(end, drop);
  node.addEventListener("keydown", (event) => {
    if (node.getAttribute("aria-disabled") === "true") return;
    let k = KEYS[event.key] ?? (event.key === "Home" ? -Infinity : event.key === "End" ? Infinity : 0);
    if (!k) return;
    if (event.shiftKey && Math.abs(k) === 1) k *= 10;
    event.preventDefault();
    step(k);
  });
  return {
    node,
    place(x, { low, high, value, text }, disabled = false) {
      set(node, {
        transform: `translate(${x.toFixed(1)} 0)`, tabindex: disabled ? -1 : 0, "aria-disabled": disabled ? "true" : null,
        "aria-valuemin": decimal(low), "aria-valuemax": decimal(high), "aria-valuenow": decimal(value), "aria-valuetext": text,
      });
    },
    held: () => dragging,
  };
}
