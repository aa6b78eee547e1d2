// @ts-check
// A dialog in front of the page.
import { byId, crossButton, fill, h, uid } from "./dom.js";

/** @import { Child } from "./types.js" */

/**
 * Show a dialog; it closes by Escape, its button or a click beside it.
 * @param {string} title
 * @param {...Child} content
 */
export function dialog(title, ...content) {
  const id = uid("dialog");
  const node = h("dialog", { "aria-labelledby": id, class: "dialog" });
  const close = crossButton("Close", () => node.close(), "dialog-close");
  fill(
    node,
    h("header", null, h("h2", { id }, title), close),
    h("div", { class: "dialog-body" }, content),
  );
  node.addEventListener("close", () => node.remove());
  node.addEventListener("click", (event) => {
    if (event.target === node) node.close();
  });
  byId("dialogs").append(node);
  node.showModal();
  return node;
}
