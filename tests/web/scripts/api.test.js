import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import * as api from "../../../src/bayescfx/web/static/api.js";

const realFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = realFetch;
});

/** Let every request have this response. */
function respond(text, status = 200) {
  globalThis.fetch = async () => new Response(text, { status });
}

test("errors are the server's sentences", async () => {
  respond('{"error": "Too many."}', 429);
  await assert.rejects(api.getSite(), { message: "Too many.", status: 429, lost: false });
  respond("<html>", 502);
  await assert.rejects(api.getSite(), { message: "The server refused (status 502)." });
  respond("no json");
  await assert.rejects(api.getSite(), { message: "The server's answer could not be read." });
});

test("a lost server is reported as lost", async () => {
  globalThis.fetch = async () => {
    throw new TypeError("failed to fetch");
  };
  await assert.rejects(api.getSite(), { lost: true });
});

test("only the latest call is answered", async () => {
  const resolvers = [];
  const request = api.latest(
    (body) => new Promise((resolve) => resolvers.push(() => resolve(body))),
  );
  const first = request("first");
  const second = request("second");
  for (const resolve of resolvers) resolve();
  assert.equal(await first, undefined);
  assert.equal(await second, "second");
});

test("questions are open until they are done or have failed", () => {
  assert.ok(api.isOpen({ state: "running" }));
  assert.ok(!api.isOpen({ state: "failed" }));
  assert.ok(!api.isOpen(null));
});
