// A dialog in front of the page.
import { fill, h, icon, uid } from "./dom.js";

/** Show a dialog with a title; returns the element, which closes by Escape, its button or a click beside it. */
export function dialog(title, ...content) {
  const id = uid("dialog");
  const node = h("dialog", { "aria-labelledby": id, class: "dialog" });
  fill(node, h("header", null, h("h2", { id }, title), h("button", { type: "button", class: "quiet square", "aria-label": "Close", "data-test": "dialog-close", onclick: () => node.close() }, icon("cross"))),
    h("div", { class: "dialog-body" }, content));
  node.addEventListener("close", () => node.remove());
  node.addEventListener("click", (event) => {
    if (event.target === node) node.close();
  });
  document.getElementById("dialogs").append(node);
  node.showModal();
  return node;
}
