// What went wrong, in the server's words, until it is read or mended.
import { crossButton, fill, h, icon } from "./dom.js";
import { clip } from "./format.js";

const shown = new Map();

function draw() {
  fill(document.getElementById("banners"), [...shown].map(([key, { text, actions, calm }]) =>
    h("div", { class: `banner${calm ? " calm" : ""}`, role: calm ? "status" : "alert", "data-test": "banner" },
      icon(calm ? "wait" : "warn"),
      h("p", { dir: "auto" }, clip(text, 700)),
      h("div", { class: "tools" },
        actions.map(([word, act]) => h("button", { "data-test": "banner-action", onclick: act }, word)),
        crossButton("Close this message", () => dismiss(key))))));
}

/** Show a message; another of the same key takes its place. */
export function say(key, text, { actions = [], calm = false } = {}) {
  const before = shown.get(key);
  if (before?.text === text && before.actions.length === actions.length) {
    before.actions = actions;
    return;
  }
  shown.set(key, { text, actions, calm });
  draw();
}

/** Take a message away. */
export function dismiss(key) {
  if (shown.delete(key)) draw();
}

/** Show an error; if the server was not heard, offer to try again. */
export function fail(error, retry = null, key = "error") {
  if (error?.name === "AbortError") return;
  const again = retry ? [["Try again", () => { dismiss(error.lost ? "lost" : key); retry(); }]] : [];
  say(error.lost ? "lost" : key, error.message || String(error), { actions: again });
}

/** The server was heard: what was said of the connection no longer holds. */
export const heard = () => dismiss("lost");
