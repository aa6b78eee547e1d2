// @ts-check
// The parts of the page as tabs.
import { byId, fill, h, set } from "./dom.js";
import { emit, state } from "./state.js";

/** @import { Child } from "./types.js" */

/** @type {Map<string, {button: HTMLElement, panel: HTMLElement, mark: HTMLElement}>} */
const tabs = new Map();

/**
 * Build the tabs; only the chosen part is shown.
 * @param {HTMLElement} list
 * @param {[string, string, ...Child[]][]} parts  key, title and content of each part
 */
export function buildTabs(list, parts) {
  for (const [key, title, ...content] of parts) tabs.set(key, buildTab(key, title, content));
  const built = [...tabs.values()];
  fill(
    list,
    built.map(({ button }) => button),
  );
  return built.map(({ panel }) => panel);
}

/**
 * @param {string} key
 * @param {string} title
 * @param {Child} content
 */
function buildTab(key, title, content) {
  const mark = h("span", { class: "mark-count", hidden: true });
  const button = h(
    "button",
    {
      role: "tab",
      id: `tab-${key}`,
      "aria-controls": `panel-${key}`,
      "data-test": `tab-${key}`,
      onclick: () => show(key),
      onkeydown: walk,
    },
    h("span", null, title),
    mark,
  );
  const panel = h(
    "div",
    {
      role: "tabpanel",
      id: `panel-${key}`,
      "aria-labelledby": `tab-${key}`,
      hidden: true,
      tabindex: -1,
    },
    content,
  );
  return { button, panel, mark };
}

/**
 * Go to another tab by an arrow key.
 * @param {KeyboardEvent} event
 */
function walk(event) {
  const keys = [...tabs.keys()];
  const at = keys.indexOf(state.tab);
  /** @type {Record<string, number>} */
  const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 };
  const to = moves[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const key = keys[(to + keys.length) % keys.length];
  show(key);
  tabs.get(key)?.button.focus();
}

/**
 * Show a part of the page; an unknown key shows the first one.
 * @param {string} wanted
 */
export function show(wanted) {
  const key = tabs.has(wanted) ? wanted : "row";
  state.tab = key;
  for (const [other, { button, panel }] of tabs) {
    const isChosen = other === key;
    set(button, { "aria-selected": String(isChosen), tabindex: isChosen ? 0 : -1 });
    panel.hidden = !isChosen;
  }
  const height = byId("tabs").offsetHeight;
  const top = byId("panels").getBoundingClientRect().top;
  if (top < height) scrollBy(0, top - height);
  emit("tab");
}

/**
 * Write a small mark beside the title of a tab; an empty text removes it.
 * @param {string} key
 * @param {string} text
 */
export function mark(key, text) {
  const node = tabs.get(key)?.mark;
  if (!node) return;
  node.textContent = text;
  node.hidden = text === "";
}
