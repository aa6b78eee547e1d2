// @ts-check
// Elements from plain data. Text is only ever text: nothing here parses HTML.

/** @import { Child, Feature, Props } from "./types.js" */

const SVG = "http://www.w3.org/2000/svg";

// Set as properties of an element; everything else is an attribute.
const PROPERTIES = new Set([
  "value",
  "checked",
  "disabled",
  "hidden",
  "selected",
  "open",
  "indeterminate",
]);

/** @param {unknown} value */
const isAbsent = (value) => value === null || value === undefined || value === false;

/**
 * Append children to a node; absent ones are left out, nested lists are flattened.
 * @template {Element} T
 * @param {T} node
 * @param {readonly Child[]} children
 * @returns {T}
 */
function append(node, children) {
  for (const child of children) {
    if (isAbsent(child)) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/**
 * Set properties, attributes and listeners of a node.
 * @template {HTMLElement | SVGElement} T
 * @param {T} node
 * @param {Props | null | undefined} props
 * @returns {T}
 */
function assign(node, props) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (isAbsent(value)) continue;
    if (typeof value === "function")
      node.addEventListener(key.slice(2), /** @type {any} */ (value));
    else if (key === "style") Object.assign(node.style, value);
    else if (PROPERTIES.has(key)) /** @type {any} */ (node)[key] = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  return node;
}

/**
 * Return an HTML element; a button does not submit a form.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  if (node instanceof HTMLButtonElement) node.type = "button";
  return append(assign(node, props), children);
}

/**
 * Return an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export const s = (tag, props, ...children) =>
  append(assign(document.createElementNS(SVG, tag), props), children);

/**
 * Return the element with an id that `index.html` defines.
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Return a small button with a sign, and a label for screen readers.
 * @param {string} label
 * @param {() => unknown} act
 * @param {string | null} test
 * @param {Child} sign
 */
export const squareButton = (label, act, test, sign) =>
  h(
    "button",
    {
      class: "quiet square",
      "aria-label": label,
      title: label,
      "data-test": test,
      onclick: act,
    },
    sign,
  );

/**
 * Return a small button with a cross, and a label for screen readers.
 * @param {string} label
 * @param {() => unknown} act
 * @param {string | null} [test]
 */
export const crossButton = (label, act, test = null) =>
  squareButton(label, act, test, icon("cross"));

/**
 * Return an entry of a description list: a term and its value.
 * @param {string} term
 * @param {...Child} content
 */
export const fact = (term, ...content) =>
  h("div", null, h("dt", null, term), h("dd", null, content));

/**
 * Replace the content of a node.
 * @template {Element} T
 * @param {T} node
 * @param {...Child} children
 * @returns {T}
 */
export function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

/**
 * Set attributes of a node; null removes one.
 * @template {Element} T
 * @param {T} node
 * @param {Record<string, string | number | boolean | null>} attributes
 * @returns {T}
 */
export function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === false) node.removeAttribute(key);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  return node;
}

let lastId = 0;

/** Return an id that no other element has. */
export function uid(prefix = "x") {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/**
 * Return a labelled control; a quiet label is for screen readers only.
 * @param {Child} label
 * @param {HTMLElement} control
 * @param {{quiet?: boolean, wide?: boolean}} [options]
 */
export function field(label, control, { quiet = false, wide = false } = {}) {
  control.id ||= uid("field");
  return h(
    "div",
    { class: `field${wide ? " wide" : ""}` },
    h("label", { for: control.id, class: quiet ? "hidden" : null }, label),
    control,
  );
}

/**
 * Return a search box that hides the lines whose feature's name lacks the typed text.
 * @param {string} test
 * @param {{feature: Feature, node: HTMLElement}[]} lines
 */
export function nameFilter(test, lines) {
  const props = { type: "search", placeholder: "name", maxlength: 100, "data-test": test };
  const box = h("input", props);
  box.addEventListener("input", () => {
    const typed = box.value.trim().toLowerCase();
    for (const { feature, node } of lines) {
      node.hidden = !feature.name.toLowerCase().includes(typed);
    }
  });
  return box;
}

/**
 * Return a function that calls `act` once no further call has come for `wait` milliseconds; its
 * `.now` calls `act` at once.
 * @template {unknown[]} A
 * @param {(...given: A) => unknown} act
 * @param {number} [wait]
 */
export function debounce(act, wait = 200) {
  let timer = 0;
  /** @param {A} given */
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
  /** @param {A} given */
  later.now = (...given) => {
    clearTimeout(timer);
    return act(...given);
  };
  return later;
}

/**
 * Return a function that calls `act` at most once per `wait` milliseconds, and once at the end.
 * @param {() => unknown} act
 * @param {number} [wait]
 */
export function throttle(act, wait = 150) {
  let timer = 0;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      act();
    }, wait);
  };
}

/**
 * Announce a text to screen readers.
 * @param {string} text
 */
export function announce(text) {
  byId("live").textContent = text;
}

/**
 * Call `act` with the width of a node whenever it changes.
 * @param {Element} node
 * @param {(width: number) => void} act
 */
export function onWidth(node, act) {
  let last = 0;
  new ResizeObserver((entries) => {
    const width = Math.round(entries[0].contentRect.width);
    if (!width || width === last) return;
    last = width;
    act(width);
  }).observe(node);
}

/** @type {Record<string, string>} */
const PATHS = {
  check: "M3.5 8.5l3 3 6-7",
  near: "M2.5 6.5c2-2 3.5-2 5.5-.5s3.5 1.5 5.5-.5M2.5 11c2-2 3.5-2 5.5-.5s3.5 1.5 5.5-.5",
  no: "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6M4 4l8 8",
  note: "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6M8 7.4v3.6M8 4.9v.1",
  wait: "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6M8 4.8V8l2.3 1.6",
  warn: "M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.2",
  lock: "M4 7.5h8v6H4zM5.5 7.5V5.3a2.5 2.5 0 0 1 5 0v2.2",
  unlock: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 4.9-.7",
  star: "M8 2.3l1.7 3.6 3.9.5-2.9 2.7.8 3.9L8 11.1 4.5 13l.8-3.9L2.4 6.4l3.9-.5z",
  play: "M5 3.2v9.6l8-4.8z",
  stop: "M4 4h8v8H4z",
  up: "M8 13V3.5M4 7.5l4-4 4 4",
  down: "M8 3v9.5M4 8.5l4 4 4-4",
  both: "M8 2.5v11M5 5.5l3-3 3 3M5 10.5l3 3 3-3",
  dice: "M3 3h10v10H3zM5.6 5.6v.1M10.4 10.4v.1M8 8v.1M10.4 5.6v.1M5.6 10.4v.1",
  cross: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1",
  moon: "M12.8 9.8A5.5 5.5 0 0 1 6.2 3.2a5.5 5.5 0 1 0 6.6 6.6z",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4v.1M2.5 8v.1M2.5 12v.1",
  out: "M8 2.5v7M5 6.5l3 3 3-3M3 12.5h10",
  gear: "M2.5 4.5h6M11.5 4.5h2M10 3v3M2.5 11.5h2M7.5 11.5h6M6 10v3",
};

/**
 * Return a small picture that accompanies a word.
 * @param {string} name
 */
export function icon(name) {
  const props = {
    class: `icon icon-${name}`,
    viewBox: "0 0 16 16",
    width: 16,
    height: 16,
    "aria-hidden": "true",
  };
  return s("svg", props, s("path", { d: PATHS[name] }));
}
