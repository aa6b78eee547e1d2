// The distribution of a feature with two handles for the range in which it may move.
import { h, onWidth, s, fill } from "./dom.js";
import { axis, cellAt, place, toNumber } from "./features.js";
import { cell as text, clip } from "./format.js";
import { handle } from "./slider.js";

const HEIGHT = 66, FLOOR = 38, TRACK = 46, SIDE = 14;

/** A feature's distribution; `moved(which, cell or null)` hears a handle: null means no limit. */
export class Range {
  constructor(feature, { moved }) {
    this.feature = feature;
    this.moved = moved;
    this.width = 280;
    this.view = { now: null, low: null, high: null, direction: "", locked: false };
    this.scene = s("g", { "aria-hidden": "true" });
    this.svg = s("svg", { class: "range", height: HEIGHT, role: "group", "aria-label": `Distribution and limits of ${clip(feature.name, 80)}` }, this.scene);
    this.ends = ["low", "high"].map((which) => this.makeHandle(which));
    this.svg.append(...this.ends.map((one) => one.node));
    this.node = h("div", { class: "range-box" }, this.svg);
    onWidth(this.node, (width) => {
      this.width = width;
      this.draw();
    });
  }

  makeHandle(which) {
    const limit = which === "low" ? "least" : "most";
    return handle({
      test: `limit-${which}`, label: `${clip(this.feature.name, 80)}, ${limit}`, top: TRACK - 8, bottom: TRACK + 8, grip: TRACK, svg: () => this.svg,
      drag: (x) => this.take(which, (x - SIDE) / (this.width - 2 * SIDE)),
      step: (k) => this.take(which, this.share(which) + (Number.isFinite(k) ? (k * this.scale.step) / (this.scale.high - this.scale.low) : k)),
    });
  }

  share(which) {
    const at = place(this.feature, this.scale, this.view[which]);
    return at ?? (which === "low" ? 0 : 1);
  }

  take(which, share) {
    const other = this.share(which === "low" ? "high" : "low");
    const kept = which === "low" ? Math.min(share, other) : Math.max(share, other);
    const open = which === "low" ? kept <= 0 : kept >= 1;
    this.moved(which, open ? null : cellAt(this.feature, this.scale, kept));
  }

  x(share) {
    return SIDE + share * (this.width - 2 * SIDE);
  }

  /** Draw: {now, low, high (cells or null), direction, locked}. */
  draw(view = this.view) {
    this.view = view;
    const held = this.ends.some((one) => one.held());
    if (!held || !this.scale) this.scale = axis(this.feature, [view.now, view.low, view.high]);
    if (!this.scale) {
      this.node.hidden = true;
      return;
    }
    this.svg.setAttribute("width", this.width);
    fill(this.scene, this.bars(), this.track(), this.now());
    this.ends.forEach((one, k) => this.placeHandle(one, ["low", "high"][k]));
  }

  bars() {
    const { histogram } = this.feature;
    if (!histogram?.edges) return null;
    const edges = histogram.edges.map((edge) => place(this.feature, this.scale, edge));
    const most = Math.max(...histogram.counts, 1);
    return histogram.counts.map((n, k) => {
      if (!n || edges[k] === null || edges[k + 1] === null) return null;
      const a = this.x(edges[k]), b = this.x(edges[k + 1]), tall = Math.max(1.5, (n / most) * (FLOOR - 4));
      return s("rect", { class: "bar", x: a + 0.5, width: Math.max(b - a - 1, 0.5), y: FLOOR - tall, height: tall });
    });
  }

  track() {
    const { direction, locked, now } = this.view;
    const at = place(this.feature, this.scale, now);
    let a = this.share("low"), b = this.share("high");
    if (at !== null && direction === "up") a = Math.max(a, at);
    if (at !== null && direction === "down") b = Math.min(b, at);
    const bar = (from, to, cls) => s("rect", { class: cls, x: this.x(from), width: Math.max(this.x(to) - this.x(from), 0), y: TRACK - 3, height: 6, rx: 3 });
    return [bar(0, 1, "track"), locked || b < a ? null : bar(a, b, "allowed")];
  }

  now() {
    const at = place(this.feature, this.scale, this.view.now);
    if (at === null) return null;
    const x = this.x(at);
    return [
      s("line", { class: "now", x1: x, x2: x, y1: 2, y2: TRACK + 3 }),
      s("path", { class: "now-mark", d: `M${x - 5} ${TRACK + 16}L${x + 5} ${TRACK + 16}L${x} ${TRACK + 7}Z` }),
    ];
  }

  placeHandle(one, which) {
    const { feature, scale, view } = this;
    const open = view[which] === null;
    const shownValue = open ? `no limit, ${which === "low" ? "lowest" : "highest"} value` : text(view[which]);
    const value = toNumber(feature, view[which]) ?? scale[which];
    one.node.classList.toggle("open", open);
    one.place(this.x(this.share(which)), { low: scale.low, high: scale.high, value, text: shownValue }, view.locked);
  }
}
