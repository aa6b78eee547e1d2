// The ruler: the predictions of the data, what is wanted, what was seen to be reachable, and the answers.
import { fill, h, onWidth, s } from "./dom.js";
import { nice, number, ticks } from "./format.js";
import { handle } from "./slider.js";

const HEIGHT = 148, TOP = 40, BASE = 104, SIDE = 26;

/** Return the ends of a ruler that shows these outputs; what is far away lies beyond its ends. */
export function domain(edges, outputs) {
  const first = Math.min(...edges), last = Math.max(...edges);
  const span = last - first || Math.abs(first) || 1;
  const near = outputs.filter((y) => Number.isFinite(y) && y > first - 1.5 * span && y < last + 1.5 * span);
  const low = Math.min(first, ...near), high = Math.max(last, ...near);
  const margin = (high - low || 1) * 0.03;
  return [low - margin, high + margin];
}

/** Return the step in which handles move on a ruler. */
export const rulerStep = ([low, high]) => nice((high - low) / 300);

/** A ruler in a node; `moved(index, value, steps)` hears what is done to its handles: by keys so many steps. */
export class Ruler {
  constructor(root, { moved }) {
    this.moved = moved;
    this.width = 600;
    this.svg = s("svg", { class: "ruler", height: HEIGHT, "data-test": "ruler", role: "group" });
    this.scene = s("g", { "aria-hidden": "true" });
    this.front = s("g");
    this.svg.append(this.patterns(), this.scene, this.front);
    this.handles = [];
    root.append(this.svg);
    this.svg.addEventListener("click", (event) => this.clicked(event));
    onWidth(root, (width) => {
      this.width = width;
      if (this.view) this.draw(this.view);
    });
  }

  patterns() {
    const stripes = (id, kind, slope) => s("pattern", { id, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${slope})` },
      s("rect", { width: 7, height: 7, class: `${kind}-back` }), s("line", { y2: 7, class: `${kind}-line` }));
    return s("defs", null, stripes("stripes-wanted", "wanted", 45), stripes("stripes-seen", "seen", -45));
  }

  get held() {
    return this.handles.some((one) => one.held());
  }

  x(y) {
    const [low, high] = this.view.domain;
    const share = Math.min(1.02, Math.max(-0.02, (y - low) / (high - low)));
    return SIDE + share * (this.width - 2 * SIDE);
  }

  y(x) {
    const [low, high] = this.view.domain;
    return low + Math.min(1, Math.max(0, (x - SIDE) / (this.width - 2 * SIDE))) * (high - low);
  }

  /** Draw: {domain, histogram, wanted, accepted, reachable, now, answers, handles: [{value, label}], label}. */
  draw(view) {
    this.view = this.held && this.view ? { ...view, domain: this.view.domain } : view;
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("aria-label", view.label);
    fill(this.scene, this.bands(), this.bars(), this.axis(), this.seen(), this.now(), this.answers());
    this.placeHandles();
  }

  clicked(event) {
    if (event.target.closest(".handle") || !this.view?.handles.length) return;
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    const far = this.view.handles.map(({ value }) => Math.abs(this.x(value) - x));
    const k = far.indexOf(Math.min(...far));
    this.handles[k].node.focus({ preventScroll: true });
    this.moved(k, this.y(x), 0);
  }

  span([low, high], cls, top, bottom, extra = {}) {
    const [first, last] = this.view.domain;
    const a = this.x(low ?? first - (last - first)), b = this.x(high ?? last + (last - first));
    const width = Math.max(b - a, 3);
    return s("rect", { class: cls, x: b - a < 3 ? (a + b) / 2 - 1.5 : a, width, y: top, height: bottom - top, ...extra });
  }

  bands() {
    const { accepted, wanted } = this.view;
    return [
      (accepted ?? []).map((part) => this.span(part, "accepted", TOP - 2, BASE)),
      (wanted ?? []).map((part) => this.span(part, "wanted", TOP - 2, BASE, { fill: "url(#stripes-wanted)" })),
    ];
  }

  bars() {
    const { edges, counts } = this.view.histogram;
    const most = Math.max(...counts, 1);
    return counts.map((n, k) => {
      const a = this.x(edges[k]), b = this.x(edges[k + 1]), tall = n ? Math.max(2, (n / most) * (BASE - TOP - 6)) : 0;
      return s("rect", { class: "bar", x: a + 0.5, width: Math.max(b - a - 1, 0.5), y: BASE - tall, height: tall });
    });
  }

  axis() {
    const [low, high] = this.view.domain;
    const marks = ticks(low, high, Math.max(3, Math.floor(this.width / 110)));
    return [
      s("line", { class: "axis", x1: SIDE - 8, x2: this.width - SIDE + 8, y1: BASE, y2: BASE }),
      marks.map((mark) => [
        s("line", { class: "axis", x1: this.x(mark), x2: this.x(mark), y1: BASE + 22, y2: BASE + 27 }),
        s("text", { class: "tick", x: this.x(mark), y: BASE + 40, "text-anchor": "middle" }, number(mark, 6)),
      ]),
    ];
  }

  seen() {
    const { reachable } = this.view;
    const back = s("rect", { class: "track", x: SIDE - 8, width: this.width - 2 * SIDE + 16, y: BASE + 6, height: 12, rx: 6 });
    return [back, reachable ? this.span(reachable, "seen", BASE + 6, BASE + 18, { rx: 6, fill: "url(#stripes-seen)", "data-test": "reachable" }) : null];
  }

  now() {
    const { now } = this.view;
    if (now === null || now === undefined) return null;
    const x = this.x(now);
    return [
      s("line", { class: "now", x1: x, x2: x, y1: TOP - 4, y2: BASE + 12 }),
      s("path", { class: "now-mark", d: `M${x - 6} ${BASE + 20}L${x + 6} ${BASE + 20}L${x} ${BASE + 10}Z` }),
      this.label(x, TOP - 10, `now ${number(now)}`, "now-text"),
    ];
  }

  label(x, y, text, cls) {
    const half = text.length * 3.8 + 4;
    const at = Math.min(Math.max(x, half), this.width - half);
    return s("text", { class: cls, x: at, y, "text-anchor": "middle" }, text);
  }

  answers() {
    const groups = [];
    const sorted = (this.view.answers ?? []).map((a) => ({ ...a, x: this.x(a.output) })).sort((a, b) => a.x - b.x);
    for (const one of sorted) {
      const last = groups.at(-1);
      if (last && one.x - last.x < 22) last.all.push(one);
      else groups.push({ x: one.x, all: [one] });
    }
    return groups.map(({ x, all }) => {
      const text = all.map((a) => a.number).sort((a, b) => a - b).join(" ");
      const width = Math.max(20, text.length * 7 + 10);
      return s("g", { class: all.some((a) => a.valid) ? "answer hit" : "answer missed", "data-test": "ruler-answer" },
        s("rect", { x: x - width / 2, width, y: BASE + 2, height: 20, rx: 10 }),
        s("text", { x, y: BASE + 16, "text-anchor": "middle" }, text));
    });
  }

  placeHandles() {
    const { handles, unit, domain: [low, high] } = this.view;
    while (this.handles.length > handles.length) this.handles.pop().node.remove();
    while (this.handles.length < handles.length) this.handles.push(this.makeHandle(this.handles.length));
    handles.forEach(({ value, label }, k) => {
      const one = this.handles[k];
      const beyond = value > high ? " →" : value < low ? "← " : "";
      const text = beyond === "← " ? beyond + number(value) : number(value) + beyond;
      one.node.setAttribute("aria-label", label);
      one.place(this.x(value), { low, high, value, text: `${label} ${number(value)} ${unit}`.trim() });
      one.tag.textContent = text;
      const half = text.length * 4.2 + 2, x = this.x(value);
      one.tag.setAttribute("x", Math.max(half - x, Math.min(0, this.width - half - x)));
    });
  }

  makeHandle(k) {
    const one = handle({
      test: "goal-handle", label: "goal", top: 18, bottom: BASE, grip: BASE - 32, svg: () => this.svg,
      drag: (x) => this.moved(k, this.y(x), 0),
      step: (steps) => this.moved(k, this.view.handles[k].value, steps),
    });
    one.tag = s("text", { class: "goal-text", y: 12, "text-anchor": "middle" });
    one.node.append(one.tag);
    this.front.append(one.node);
    return one;
  }
}

/** Return the legend of a ruler: every sign with its word. */
export function legend() {
  const item = (cls, word) => h("li", null, h("i", { class: `key ${cls}`, "aria-hidden": "true" }), word);
  return h("ul", { class: "legend" },
    item("key-bar", "predictions of the data"), item("key-wanted", "wanted"), item("key-accepted", "close enough"), item("key-seen", "seen to be reachable"),
    item("key-now", "this row now"), item("key-answer", "answers"));
}
