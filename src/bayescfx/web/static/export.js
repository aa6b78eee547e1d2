// Take an answer away: files, and the same question as Python or as a command.
import { exportPath, exportText } from "./api.js";
import { fail } from "./banner.js";
import { announce, fill, h, icon } from "./dom.js";
import { dialog } from "./dialog.js";

const FORMS = [
  ["json", "JSON", "everything, to be read back", false],
  ["csv", "CSV", "the rows, for a spreadsheet", false],
  ["html", "HTML report", "one file with pictures", false],
  ["md", "Markdown", "for notes and tickets", true],
  ["py", "Python", "the same question as a script", true],
  ["sh", "Command line", "the same question in a shell", true],
  ["toml", "Settings (TOML)", "what may change, to be edited", true],
];

/** Return the menu of exports of a question. */
export function exportMenu(question) {
  const items = FORMS.map(([form, word, use, isText]) => h("li", null,
    h("a", { href: exportPath(question.id, form), download: "", "data-test": `export-${form}` }, icon("out"),
      h("span", null, h("strong", null, word), h("span", { class: "hint" }, use))),
    isText ? h("button", { class: "quiet", "data-test": `show-${form}`, "aria-label": `Show ${word}`,
      onclick: () => showText(question.id, form, word) }, "Show") : null));
  const menu = h("details", { class: "menu", "data-test": "export-menu" }, h("summary", { class: "button" }, icon("out"), "Export"), h("ul", { class: "sheet" }, items));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return menu;
}

document.addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

async function showText(id, form, word) {
  let text;
  try {
    text = await exportText(id, form);
  } catch (error) {
    return fail(error, () => showText(id, form, word), "export");
  }
  const copy = h("button", { class: "primary", "data-test": "copy", onclick: () => toClipboard(text, copy) }, "Copy");
  dialog(word, h("pre", { class: "code", tabindex: 0, "data-test": "export-text" }, text), h("div", { class: "row" }, copy));
}

/** Copy a text, and say so on the button. */
export async function toClipboard(text, button) {
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
