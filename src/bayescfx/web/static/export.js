// @ts-check
// Exports of an answer: files, and the same question as Python or as a command.
import { asApiError, exportPath, getExport } from "./api.js";
import { fail } from "./banner.js";
import { dialog } from "./dialog.js";
import { announce, fill, h, icon } from "./dom.js";

/** @import { Question } from "./types.js" */

/** @type {[string, string, string, boolean][]} */
const FORMS = [
  ["json", "JSON", "everything, to be read back", false],
  ["csv", "CSV", "the rows, for a spreadsheet", false],
  ["html", "HTML report", "one file with pictures", false],
  ["md", "Markdown", "for notes and tickets", true],
  ["py", "Python", "the same question as a script", true],
  ["sh", "Command line", "the same question in a shell", true],
  ["toml", "Settings (TOML)", "the constraints, to be edited", true],
];

/**
 * Return the menu of exports of a question.
 * @param {Question} question
 */
export function exportMenu({ id }) {
  const items = FORMS.map(([form, title, use, isText]) => {
    const link = { href: exportPath(id, form), download: "", "data-test": `export-${form}` };
    const text = h("span", null, h("strong", null, title), h("span", { class: "hint" }, use));
    return h(
      "li",
      null,
      h("a", link, icon("out"), text),
      isText ? showButton(id, form, title) : null,
    );
  });
  const menu = h(
    "details",
    { class: "menu", "data-test": "export-menu" },
    h("summary", { class: "button" }, icon("out"), "Export"),
    h("ul", { class: "sheet" }, items),
  );
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !menu.contains(relatedTarget)) menu.open = false;
  });
  return menu;
}

/**
 * @param {number} id
 * @param {string} form
 * @param {string} title
 */
function showButton(id, form, title) {
  const props = {
    class: "quiet",
    "data-test": `show-${form}`,
    "aria-label": `Show ${title}`,
    onclick: () => showText(id, form, title),
  };
  return h("button", props, "Show");
}

/** Close open menus by a click beside them. */
export function closeMenusOutside() {
  document.addEventListener("pointerdown", ({ target }) => {
    for (const menu of document.querySelectorAll("details")) {
      const isInside = target instanceof Node && menu.contains(target);
      if (menu.classList.contains("menu") && !isInside) menu.open = false;
    }
  });
}

/**
 * Show an export in a dialog.
 * @param {number} id
 * @param {string} form
 * @param {string} title
 */
async function showText(id, form, title) {
  try {
    const text = await getExport(id, form);
    const copy = h("button", { class: "primary", "data-test": "copy" }, "Copy");
    copy.onclick = () => copyText(text, copy);
    const code = h("pre", { class: "code", tabindex: 0, "data-test": "export-text" }, text);
    dialog(title, code, h("div", { class: "row" }, copy));
  } catch (error) {
    fail(asApiError(error), () => showText(id, form, title), "export");
  }
}

/**
 * Copy a text, and confirm it on the button.
 * @param {string} text
 * @param {HTMLElement} button
 */
export async function copyText(text, button) {
  const before = [...button.childNodes];
  try {
    await navigator.clipboard.writeText(text);
    fill(button, icon("check"), "Copied");
    announce("Copied.");
  } catch {
    fill(button, icon("warn"), "Select and copy by hand");
  }
  setTimeout(() => fill(button, before), 2000);
}
