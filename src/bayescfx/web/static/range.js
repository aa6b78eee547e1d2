// @ts-check
// The distribution of a feature, with two handles for the range in which it may move.
import { fill, h, onWidth, s } from "./dom.js";
import { axis, cellAt, place, toNumber } from "./features.js";
import { clip, cell as text } from "./format.js";
import { Handle } from "./slider.js";

/** @import { Axis, Cell, Feature } from "./types.js" */

/** @typedef {"low" | "high"} End */
/** @typedef {{now: Cell, low: Cell, high: Cell, direction: string, locked: boolean}} RangeView */

const HEIGHT = 66;
const FLOOR = 38;
const TRACK = 46;
const SIDE = 14;

/**
 * Return the place of a dragged end between 0 and 1, which stays on its side of the other end;
 * null if it is at the end of the axis, which means no limit.
 * @param {End} which
 * @param {number} share
 * @param {number} other  the place of the other end
 */
export function endShare(which, share, other) {
  const kept = which === "low" ? Math.min(share, other) : Math.max(share, other);
  const isOpen = which === "low" ? kept <= 0 : kept >= 1;
  return isOpen ? null : kept;
}

/**
 * Return the interval of places that limits and a direction allow; null if it is empty.
 * @param {number} low
 * @param {number} high
 * @param {number | null} now
 * @param {string} direction
 * @returns {[number, number] | null}
 */
export function allowedShares(low, high, now, direction) {
  const first = now !== null && direction === "up" ? Math.max(low, now) : low;
  const last = now !== null && direction === "down" ? Math.min(high, now) : high;
  return last < first ? null : [first, last];
}

/** A feature's distribution with handles; `moved` gets the new limit, null for no limit. */
export class Range {
  /**
   * @param {Feature} feature
   * @param {{moved: (which: End, cell: Cell) => void}} options
   */
  constructor(feature, { moved }) {
    this.feature = feature;
    this.moved = moved;
    this.width = 280;
    /** @type {RangeView} */
    this.view = { now: null, low: null, high: null, direction: "", locked: false };
    /** @type {Axis | null} */
    this.scale = null;
    this.scene = s("g", { "aria-hidden": "true" });
    const label = `Distribution and limits of ${clip(feature.name, 80)}`;
    const props = { class: "range", height: HEIGHT, role: "group", "aria-label": label };
    this.svg = s("svg", props, this.scene);
    this.lowHandle = this.makeHandle("low");
    this.highHandle = this.makeHandle("high");
    this.svg.append(this.lowHandle.node, this.highHandle.node);
    this.node = h("div", { class: "range-box" }, this.svg);
    onWidth(this.node, (width) => {
      this.width = width;
      this.draw();
    });
  }

  /** @param {End} which */
  makeHandle(which) {
    const limit = which === "low" ? "least" : "most";
    return new Handle({
      test: `limit-${which}`,
      label: `${clip(this.feature.name, 80)}, ${limit}`,
      top: TRACK - 8,
      bottom: TRACK + 8,
      grip: TRACK,
      svg: () => this.svg,
      drag: (x) => this.take(which, (x - SIDE) / (this.width - 2 * SIDE)),
      step: (k) => this.take(which, this.share(which) + this.stepShare(k)),
    });
  }

  /**
   * Return the share of the axis that some steps cover.
   * @param {number} k
   */
  stepShare(k) {
    if (!this.scale || !Number.isFinite(k)) return k;
    return (k * this.scale.step) / (this.scale.high - this.scale.low);
  }

  /**
   * Return the place of a cell between 0 and 1.
   * @param {Cell} cell
   */
  placeOf(cell) {
    return this.scale ? place(this.feature, this.scale, cell) : null;
  }

  /** @param {End} which */
  share(which) {
    return this.placeOf(this.view[which]) ?? (which === "low" ? 0 : 1);
  }

  /**
   * Report a new limit.
   * @param {End} which
   * @param {number} share
   */
  take(which, share) {
    if (!this.scale) return;
    const kept = endShare(which, share, this.share(which === "low" ? "high" : "low"));
    this.moved(which, kept === null ? null : cellAt(this.feature, this.scale, kept));
  }

  /** @param {number} share */
  x(share) {
    return SIDE + share * (this.width - 2 * SIDE);
  }

  /** @param {RangeView} [view] */
  draw(view = this.view) {
    this.view = view;
    const isHeld = this.lowHandle.isHeld || this.highHandle.isHeld;
    if (!isHeld || !this.scale) this.scale = axis(this.feature, [view.now, view.low, view.high]);
    if (!this.scale) {
      this.node.hidden = true;
      return;
    }
    this.svg.setAttribute("width", String(this.width));
    fill(this.scene, this.bars(), this.track(), this.now());
    this.placeHandle(this.lowHandle, "low", this.scale);
    this.placeHandle(this.highHandle, "high", this.scale);
  }

  bars() {
    const { histogram } = this.feature;
    if (!histogram?.edges) return null;
    const edges = histogram.edges.map((edge) => this.placeOf(edge));
    const largest = Math.max(...histogram.counts, 1);
    return histogram.counts.map((n, k) => {
      const from = edges[k];
      const to = edges[k + 1];
      if (!n || from === null || to === null) return null;
      const left = this.x(from);
      const width = Math.max(this.x(to) - left - 1, 0.5);
      const height = Math.max(1.5, (n / largest) * (FLOOR - 4));
      return s("rect", { class: "bar", x: left + 0.5, width, y: FLOOR - height, height });
    });
  }

  track() {
    const { direction, locked, now } = this.view;
    const at = this.placeOf(now);
    const allowed = allowedShares(this.share("low"), this.share("high"), at, direction);
    return [
      this.bar(0, 1, "track"),
      locked || allowed === null ? null : this.bar(...allowed, "allowed"),
    ];
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {string} cls
   */
  bar(from, to, cls) {
    const width = Math.max(this.x(to) - this.x(from), 0);
    return s("rect", { class: cls, x: this.x(from), width, y: TRACK - 3, height: 6, rx: 3 });
  }

  now() {
    const at = this.placeOf(this.view.now);
    if (at === null) return null;
    const x = this.x(at);
    const triangle = `M${x - 5} ${TRACK + 16}L${x + 5} ${TRACK + 16}L${x} ${TRACK + 7}Z`;
    return [
      s("line", { class: "now", x1: x, x2: x, y1: 2, y2: TRACK + 3 }),
      s("path", { class: "now-mark", d: triangle }),
    ];
  }

  /**
   * @param {Handle} handle
   * @param {End} which
   * @param {Axis} scale
   */
  placeHandle(handle, which, scale) {
    const cell = this.view[which];
    const isOpen = cell === null;
    const noLimit = `no limit, ${which === "low" ? "lowest" : "highest"} value`;
    const value = toNumber(this.feature, cell) ?? scale[which];
    handle.node.classList.toggle("open", isOpen);
    const shown = { low: scale.low, high: scale.high, value, text: isOpen ? noLimit : text(cell) };
    handle.place(this.x(this.share(which)), shown, this.view.locked);
  }
}
