// @ts-check
// The ruler: predictions of the data, the target, the outputs seen by the search, and the answers.
import { fill, h, onWidth, s } from "./dom.js";
import { nice, number, ticks } from "./format.js";
import { Handle } from "./slider.js";

/** @import { Histogram, Interval } from "./types.js" */

/** @typedef {[number, number]} Domain */
/** @typedef {{number: number, output: number, valid: boolean}} RulerAnswer */
/**
 * @typedef {object} RulerView
 * @property {Domain} domain
 * @property {Histogram} histogram
 * @property {Interval[] | null} wanted
 * @property {Interval[] | null} accepted
 * @property {Interval | null} reachable
 * @property {number | null} now
 * @property {RulerAnswer[]} answers
 * @property {{value: number, label: string}[]} handles
 * @property {string} unit
 * @property {string} label
 */

const HEIGHT = 148;
const TOP = 40;
const BASE = 104;
const SIDE = 26;
const BADGE_GAP = 22; // pixels between answers that share a badge

/**
 * Return the ends of a ruler that shows these outputs; distant ones lie beyond its ends.
 * @param {number[]} edges  of the histogram of predictions
 * @param {number[]} outputs
 * @returns {Domain}
 */
export function domain(edges, outputs) {
  const first = Math.min(...edges);
  const last = Math.max(...edges);
  const span = last - first || Math.abs(first) || 1;
  const near = outputs.filter((y) => y > first - 1.5 * span && y < last + 1.5 * span);
  const low = Math.min(first, ...near);
  const high = Math.max(last, ...near);
  const margin = (high - low || 1) * 0.03;
  return [low - margin, high + margin];
}

/**
 * Return the step in which handles move on a ruler.
 * @param {Domain} ends
 */
export const rulerStep = ([low, high]) => nice((high - low) / 300);

/**
 * Group answers whose places are close together, from left to right.
 * @template {{x: number}} Placed
 * @param {Placed[]} answers
 * @param {number} [gap]  in pixels
 */
export function groupByPlace(answers, gap = BADGE_GAP) {
  /** @type {{x: number, members: Placed[]}[]} */
  const groups = [];
  const sorted = [...answers].sort((a, b) => a.x - b.x);
  for (const answer of sorted) {
    const last = groups.at(-1);
    if (last && answer.x - last.x < gap) last.members.push(answer);
    else groups.push({ x: answer.x, members: [answer] });
  }
  return groups;
}

/**
 * Return the text of a handle; an arrow shows that its value lies beyond the ruler.
 * @param {number} value
 * @param {Domain} ends
 */
export function handleText(value, [low, high]) {
  if (value < low) return `← ${number(value)}`;
  return value > high ? `${number(value)} →` : number(value);
}

/**
 * A ruler in a node. `moved(index, value, steps)` gets a handle's new value and no steps from the
 * pointer, and its old value and the steps from a key.
 */
export class Ruler {
  /**
   * @param {Element} root
   * @param {{moved: (index: number, value: number, steps: number) => void}} options
   */
  constructor(root, { moved }) {
    this.moved = moved;
    this.width = 600;
    /** @type {RulerView} */
    this.view = {
      domain: [0, 1],
      histogram: { edges: [0, 1], counts: [0] },
      wanted: null,
      accepted: null,
      reachable: null,
      now: null,
      answers: [],
      handles: [],
      unit: "",
      label: "Ruler",
    };
    this.svg = s("svg", { class: "ruler", height: HEIGHT, "data-test": "ruler", role: "group" });
    this.scene = s("g", { "aria-hidden": "true" });
    this.front = s("g");
    this.svg.append(this.patterns(), this.scene, this.front);
    /** @type {{handle: Handle, tag: SVGTextElement}[]} */
    this.handles = [];
    root.append(this.svg);
    this.svg.addEventListener("click", (event) => this.clicked(event));
    onWidth(root, (width) => {
      this.width = width;
      this.draw(this.view);
    });
  }

  patterns() {
    return s(
      "defs",
      null,
      stripes("stripes-wanted", "wanted", 45),
      stripes("stripes-seen", "seen", -45),
    );
  }

  /**
   * Return the place of an output, in pixels.
   * @param {number} output
   */
  x(output) {
    const [low, high] = this.view.domain;
    const share = Math.min(1.02, Math.max(-0.02, (output - low) / (high - low)));
    return SIDE + share * (this.width - 2 * SIDE);
  }

  /**
   * Return the output at a place.
   * @param {number} x  in pixels
   */
  output(x) {
    const [low, high] = this.view.domain;
    const share = Math.min(1, Math.max(0, (x - SIDE) / (this.width - 2 * SIDE)));
    return low + share * (high - low);
  }

  /** @param {RulerView} view */
  draw(view) {
    const isHeld = this.handles.some(({ handle }) => handle.isHeld);
    this.view = isHeld ? { ...view, domain: this.view.domain } : view;
    this.svg.setAttribute("width", String(this.width));
    this.svg.setAttribute("aria-label", view.label);
    fill(
      this.scene,
      this.bands(),
      this.bars(),
      this.axis(),
      this.seen(),
      this.now(),
      this.answers(),
    );
    this.placeHandles();
  }

  /**
   * Move the nearest handle to a click.
   * @param {MouseEvent} event
   */
  clicked(event) {
    const isOnHandle = event.target instanceof Element && event.target.closest(".handle");
    if (isOnHandle || !this.view.handles.length) return;
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    const distances = this.view.handles.map(({ value }) => Math.abs(this.x(value) - x));
    const k = distances.indexOf(Math.min(...distances));
    this.handles[k].handle.node.focus({ preventScroll: true });
    this.moved(k, this.output(x), 0);
  }

  /**
   * Return an interval as a bar, at least three pixels wide.
   * @param {Interval} interval
   * @param {string} cls
   * @param {number} top
   * @param {number} bottom
   * @param {object} [extra]
   */
  span([low, high], cls, top, bottom, extra = {}) {
    const [first, last] = this.view.domain;
    const left = this.x(low ?? first - (last - first));
    const right = this.x(high ?? last + (last - first));
    const width = Math.max(right - left, 3);
    const x = right - left < 3 ? (left + right) / 2 - 1.5 : left;
    return s("rect", { class: cls, x, width, y: top, height: bottom - top, ...extra });
  }

  bands() {
    const { accepted, wanted } = this.view;
    const striped = { fill: "url(#stripes-wanted)" };
    return [
      (accepted ?? []).map((part) => this.span(part, "accepted", TOP - 2, BASE)),
      (wanted ?? []).map((part) => this.span(part, "wanted", TOP - 2, BASE, striped)),
    ];
  }

  bars() {
    const { edges, counts } = this.view.histogram;
    const largest = Math.max(...counts, 1);
    return counts.map((n, k) => {
      const left = this.x(edges[k]);
      const width = Math.max(this.x(edges[k + 1]) - left - 1, 0.5);
      const height = n ? Math.max(2, (n / largest) * (BASE - TOP - 6)) : 0;
      return s("rect", { class: "bar", x: left + 0.5, width, y: BASE - height, height });
    });
  }

  axis() {
    const [low, high] = this.view.domain;
    const marks = ticks(low, high, Math.max(3, Math.floor(this.width / 110)));
    const line = { class: "axis", x1: SIDE - 8, x2: this.width - SIDE + 8, y1: BASE, y2: BASE };
    return [s("line", line), marks.map((mark) => this.tick(mark))];
  }

  /** @param {number} mark */
  tick(mark) {
    const x = this.x(mark);
    return [
      s("line", { class: "axis", x1: x, x2: x, y1: BASE + 22, y2: BASE + 27 }),
      s("text", { class: "tick", x, y: BASE + 40, "text-anchor": "middle" }, number(mark, 6)),
    ];
  }

  seen() {
    const { reachable } = this.view;
    const width = this.width - 2 * SIDE + 16;
    const track = { class: "track", x: SIDE - 8, width, y: BASE + 6, height: 12, rx: 6 };
    const props = { rx: 6, fill: "url(#stripes-seen)", "data-test": "reachable" };
    return [
      s("rect", track),
      reachable ? this.span(reachable, "seen", BASE + 6, BASE + 18, props) : null,
    ];
  }

  now() {
    const { now } = this.view;
    if (now === null) return null;
    const x = this.x(now);
    const triangle = `M${x - 6} ${BASE + 20}L${x + 6} ${BASE + 20}L${x} ${BASE + 10}Z`;
    return [
      s("line", { class: "now", x1: x, x2: x, y1: TOP - 4, y2: BASE + 12 }),
      s("path", { class: "now-mark", d: triangle }),
      this.label(x, TOP - 10, `now ${number(now)}`, "now-text"),
    ];
  }

  /**
   * Return a text that stays inside the picture.
   * @param {number} x
   * @param {number} y
   * @param {string} text
   * @param {string} cls
   */
  label(x, y, text, cls) {
    const half = text.length * 3.8 + 4;
    const at = Math.min(Math.max(x, half), this.width - half);
    return s("text", { class: cls, x: at, y, "text-anchor": "middle" }, text);
  }

  answers() {
    const placed = this.view.answers.map((answer) => ({ ...answer, x: this.x(answer.output) }));
    return groupByPlace(placed).map(({ x, members }) => {
      const numbers = members.map((answer) => answer.number).sort((a, b) => a - b);
      const text = numbers.join(" ");
      const width = Math.max(20, text.length * 7 + 10);
      const isHit = members.some((answer) => answer.valid);
      const props = { class: isHit ? "answer hit" : "answer missed", "data-test": "ruler-answer" };
      return s(
        "g",
        props,
        s("rect", { x: x - width / 2, width, y: BASE + 2, height: 20, rx: 10 }),
        s("text", { x, y: BASE + 16, "text-anchor": "middle" }, text),
      );
    });
  }

  placeHandles() {
    const { handles } = this.view;
    while (this.handles.length > handles.length) this.handles.pop()?.handle.node.remove();
    while (this.handles.length < handles.length) {
      this.handles.push(this.makeHandle(this.handles.length));
    }
    for (const [k, { value, label }] of handles.entries()) this.placeHandle(k, value, label);
  }

  /**
   * @param {number} k
   * @param {number} value
   * @param {string} label
   */
  placeHandle(k, value, label) {
    const { handle, tag } = this.handles[k];
    const { unit, domain: ends } = this.view;
    const [low, high] = ends;
    const text = handleText(value, ends);
    const x = this.x(value);
    const half = text.length * 4.2 + 2;
    handle.node.setAttribute("aria-label", label);
    handle.place(x, { low, high, value, text: `${label} ${number(value)} ${unit}`.trim() });
    tag.textContent = text;
    tag.setAttribute("x", String(Math.max(half - x, Math.min(0, this.width - half - x))));
  }

  /** @param {number} k */
  makeHandle(k) {
    const handle = new Handle({
      test: "target-handle",
      label: "target",
      top: 18,
      bottom: BASE,
      grip: BASE - 32,
      svg: () => this.svg,
      drag: (x) => this.moved(k, this.output(x), 0),
      step: (steps) => this.moved(k, this.view.handles[k].value, steps),
    });
    const tag = s("text", { class: "target-text", y: 12, "text-anchor": "middle" });
    handle.node.append(tag);
    this.front.append(handle.node);
    return { handle, tag };
  }
}

/**
 * Return a striped pattern.
 * @param {string} id
 * @param {string} kind
 * @param {number} slope  in degrees
 */
function stripes(id, kind, slope) {
  const props = {
    id,
    width: 7,
    height: 7,
    patternUnits: "userSpaceOnUse",
    patternTransform: `rotate(${slope})`,
  };
  return s(
    "pattern",
    props,
    s("rect", { width: 7, height: 7, class: `${kind}-back` }),
    s("line", { y2: 7, class: `${kind}-line` }),
  );
}

/** Return the legend of a ruler: every sign with its word. */
export function legend() {
  /** @type {[string, string][]} */
  const entries = [
    ["key-bar", "predictions of the data"],
    ["key-wanted", "target"],
    ["key-accepted", "within the tolerance"],
    ["key-seen", "outputs seen"],
    ["key-now", "this row now"],
    ["key-answer", "answers"],
  ];
  return h(
    "ul",
    { class: "legend" },
    entries.map(([cls, word]) =>
      h("li", null, h("i", { class: `key ${cls}`, "aria-hidden": "true" }), word),
    ),
  );
}
