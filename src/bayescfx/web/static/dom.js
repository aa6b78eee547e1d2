// Elements from plain data. Text is only ever text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function assign(node, props) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(node.style, value);
    else if (key in PROPERTIES) node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  return node;
}

const PROPERTIES = { value: 1, checked: 1, disabled: 1, hidden: 1, selected: 1, open: 1, indeterminate: 1 };

/** Return an HTML element; a button sends nothing. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  return put(assign(node, props), children);
}

/** Return a small button with a cross, and words for those who don't see it. */
export const crossButton = (label, act, test = null) => squareButton(label, act, test, icon("cross"));

/** Return a small button with a sign, and words for those who don't see it. */
export const squareButton = (label, act, test, sign) =>
  h("button", { class: "quiet square", "aria-label": label, title: label, "data-test": test, onclick: act }, sign);

/** Return a term of a list of facts, with what it is. */
export const fact = (word, ...inside) => h("div", null, h("dt", null, word), h("dd", null, inside));

/** Return an SVG element. */
export const s = (tag, props, ...children) => put(assign(document.createElementNS(SVG, tag), props), children);

/** Replace what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

/** Set attributes of a node; null takes one away. */
export function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === false) node.removeAttribute(key);
    else node.setAttribute(key, value === true ? "" : value);
  }
  return node;
}

let counter = 0;

/** Return an identifier that no other element has. */
export const uid = (word = "x") => `${word}-${++counter}`;

/** Return a labelled control: the label is on top of it, or hidden but for screen readers. */
export function field(label, control, { quiet = false, wide = false } = {}) {
  control.id ||= uid("field");
  return h(
    "div",
    { class: `field${wide ? " wide" : ""}` },
    h("label", { for: control.id, class: quiet ? "hidden" : null }, label),
    control,
  );
}

/** Return a box that hides the lines, of [{feature, node}], whose feature's name lacks what is typed. */
export function nameFilter(test, lines) {
  const box = h("input", { type: "search", placeholder: "name", maxlength: 100, "data-test": test, oninput: () => {
    const wanted = box.value.trim().toLowerCase();
    for (const { feature, node } of lines) node.hidden = !feature.name.toLowerCase().includes(wanted);
  } });
  return box;
}

/** Return a function that waits for calm before it calls `act`; `.now` doesn't wait. */
export function debounce(act, wait = 200) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
  later.now = (...given) => {
    clearTimeout(timer);
    return act(...given);
  };
  return later;
}

/** Return a function that calls `act` at most once per `wait` milliseconds, and once at the end. */
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

/** Say something to those who don't see the page. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** Call `act` with the width of a node whenever it changes. */
export function onWidth(node, act) {
  let last = 0;
  new ResizeObserver((entries) => {
    const width = Math.round(entries[0].contentRect.width);
    if (width && width !== last) act((last = width));
  }).observe(node);
}

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

/** Return a small picture that goes with a word. */
export function icon(name) {
  return s("svg", { class: `icon icon-${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    s("path", { d: PATHS[name] }));
}
