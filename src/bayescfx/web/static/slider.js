// @ts-check
// A handle on a picture: dragged by pointer, moved by keys, described to screen readers.
import { s, set } from "./dom.js";
import { decimal } from "./format.js";

/** @type {Record<string, number>} */
const KEYS = {
  ArrowRight: 1,
  ArrowUp: 1,
  ArrowLeft: -1,
  ArrowDown: -1,
  PageUp: 10,
  PageDown: -10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/**
 * Return the steps that a key asks for: ten with Shift, infinitely many to an end, otherwise 0.
 * @param {string} key
 * @param {boolean} isShifted
 */
export function keySteps(key, isShifted) {
  const steps = KEYS[key] ?? 0;
  return isShifted && Math.abs(steps) === 1 ? 10 * steps : steps;
}

/**
 * @typedef {object} HandleOptions
 * @property {string} test  the name for tests
 * @property {string} label
 * @property {number} top  the upper end of the stem, in pixels of the picture
 * @property {number} bottom  its lower end
 * @property {number} grip  the height of the grip
 * @property {(x: number) => void} drag  called with the pointer's place, in pixels of the picture
 * @property {(k: number) => void} step  called with the steps of a key, see `keySteps`
 * @property {() => Element} svg  the picture
 */

/**
 * @typedef {object} HandleValue
 * @property {number} low
 * @property {number} high
 * @property {number} value
 * @property {string} text
 */

/** A handle in an SVG picture. */
export class Handle {
  /** @param {HandleOptions} options */
  constructor(options) {
    const { test, label, top, bottom, grip } = options;
    this.options = options;
    this.isHeld = false;
    this.lastX = 0; // where the pointer was: an interrupted drag ends there
    const props = {
      class: "handle",
      role: "slider",
      tabindex: 0,
      "aria-label": label,
      "data-test": test,
    };
    this.node = s(
      "g",
      props,
      s("line", { class: "stem", y1: top, y2: bottom }),
      s("circle", { class: "hit", cy: grip, r: 22 }),
      s("circle", { class: "ring", cy: grip, r: 13 }),
      s("circle", { class: "grip", cy: grip, r: 8 }),
    );
    this.listen();
  }

  get isDisabled() {
    return this.node.getAttribute("aria-disabled") === "true";
  }

  listen() {
    this.node.addEventListener("pointerdown", (event) => this.hold(event));
    this.node.addEventListener("pointermove", (event) => {
      if (this.isHeld) this.options.drag(this.track(event));
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      this.node.addEventListener(end, () => this.release());
    }
    this.node.addEventListener("keydown", (event) => {
      const steps = keySteps(event.key, event.shiftKey);
      if (this.isDisabled || steps === 0) return;
      event.preventDefault();
      this.options.step(steps);
    });
  }

  /** @param {PointerEvent} event */
  track(event) {
    this.lastX = event.clientX - this.options.svg().getBoundingClientRect().left;
    return this.lastX;
  }

  /** @param {PointerEvent} event */
  hold(event) {
    if (event.button !== 0 || this.isDisabled) return;
    this.isHeld = true;
    this.track(event);
    this.node.setPointerCapture(event.pointerId);
    this.node.classList.add("held");
    this.node.focus({ preventScroll: true });
    event.preventDefault();
  }

  release() {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.node.classList.remove("held");
    this.options.drag(this.lastX);
  }

  /**
   * Move the handle to a place of the picture.
   * @param {number} x
   * @param {HandleValue} value
   * @param {boolean} [isDisabled]
   */
  place(x, { low, high, value, text }, isDisabled = false) {
    set(this.node, {
      transform: `translate(${x.toFixed(1)} 0)`,
      tabindex: isDisabled ? -1 : 0,
      "aria-disabled": isDisabled ? "true" : null,
      "aria-valuemin": decimal(low),
      "aria-valuemax": decimal(high),
      "aria-valuenow": decimal(value),
      "aria-valuetext": text,
    });
  }
}
