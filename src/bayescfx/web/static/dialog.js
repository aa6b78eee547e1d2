// A dialog in front of the page.
import { crossButton, fill, h, uid } from "./dom.js";

/** Show a dialog with a title; returns the element, which closes by Escape, its button or a click beside it. */
export function dialog(title, ...content) {
  const id = uid("dialog");
  const node = h("dialog", { "aria-labelledby": id, class: "dialog" });
  fill(node, h("header", null, h("h2", { id }, title), crossButton("Close", () => node.close(), "dialog-close")),
    h("div", { class: "dialog-body" }, content));
  node.addEventListener("close", () => node.remove());
  node.addEventListener("click", (event) => {
    if (event.target === node) node.close();
  });
  document.getElementById("dialogs").append(node);
  node.showModal();
  return node;
}
