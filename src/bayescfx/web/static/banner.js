// @ts-check
// Messages above the page, until they are closed or no longer hold.
import { byId, crossButton, fill, h, icon } from "./dom.js";
import { clip } from "./format.js";

/** @import { ApiError } from "./api.js" */

/** @typedef {{text: string, actions: [string, () => unknown][]}} Message */

/** @type {Map<string, Message>} */
const messages = new Map();

function draw() {
  fill(
    byId("banners"),
    [...messages].map(([key, { text, actions }]) =>
      h(
        "div",
        { class: "banner", role: "alert", "data-test": "banner" },
        icon("warn"),
        h("p", { dir: "auto" }, clip(text, 700)),
        h(
          "div",
          { class: "tools" },
          actions.map(([word, act]) =>
            h("button", { "data-test": "banner-action", onclick: act }, word),
          ),
          crossButton("Close this message", () => dismiss(key)),
        ),
      ),
    ),
  );
}

/**
 * Show a message; it replaces an earlier one with the same key.
 * @param {string} key
 * @param {string} text
 * @param {[string, () => unknown][]} [actions]  words of buttons, and what they do
 */
export function showMessage(key, text, actions = []) {
  const before = messages.get(key);
  if (before?.text === text && before.actions.length === actions.length) {
    before.actions = actions;
    return;
  }
  messages.set(key, { text, actions });
  draw();
}

/**
 * Remove a message.
 * @param {string} key
 */
export function dismiss(key) {
  if (messages.delete(key)) draw();
}

/**
 * Show an error, with a button that tries again.
 * @param {ApiError} error
 * @param {(() => unknown) | null} [retry]
 * @param {string} [key]
 */
export function fail(error, retry = null, key = "error") {
  const shownKey = error.lost ? "lost" : key;
  const again = () => {
    dismiss(shownKey);
    retry?.();
  };
  showMessage(shownKey, error.message, retry ? [["Try again", again]] : []);
}

/** Remove the message about a lost connection: the server has answered. */
export const clearLost = () => dismiss("lost");
