// The parts of the page as tabs.
import { fill, h, set } from "./dom.js";
import { emit, state } from "./state.js";

const tabs = new Map();

/** Build the tabs: [[key, word, node], …]; only what is chosen is shown. */
export function buildTabs(list, parts) {
  for (const [key, word, ...content] of parts) {
    const about = { role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}`, "data-test": `tab-${key}` };
    const button = h("button", { ...about, onclick: () => show(key), onkeydown: walk }, h("span", null, word));
    const mark = h("span", { class: "mark-count", hidden: true });
    button.append(mark);
    const panel = h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}`, hidden: true, tabindex: -1 }, content);
    tabs.set(key, { button, panel, mark });
  }
  fill(list, [...tabs.values()].map(({ button }) => button));
  return [...tabs.values()].map(({ panel }) => panel);
}

function walk(event) {
  const keys = [...tabs.keys()], at = keys.indexOf(state.tab);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const key = keys[(to + keys.length) % keys.length];
  show(key);
  tabs.get(key).button.focus();
}

/** Show a part of the page. */
export function show(wanted) {
  const key = tabs.has(wanted) ? wanted : "row";
  state.tab = key;
  for (const [other, { button, panel }] of tabs) {
    set(button, { "aria-selected": String(other === key), tabindex: other === key ? 0 : -1 });
    panel.hidden = other !== key;
  }
  const bar = document.getElementById("tabs"), top = document.getElementById("panels").getBoundingClientRect().top;
  if (top < bar.offsetHeight) scrollBy(0, top - bar.offsetHeight);
  emit("tab");
}

/** Write a small mark beside the word of a tab, or take it away. */
export function mark(key, text) {
  const node = tabs.get(key)?.mark;
  if (!node) return;
  node.textContent = text;
  node.hidden = text === "";
}
