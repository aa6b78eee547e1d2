// The server's words: one function per call, errors as sentences, progress as a stream.

/** What went wrong, in words for the reader; `lost` if the server was not heard at all. */
class ApiError extends Error {
  constructor(message, { status = 0, lost = false } = {}) {
    super(message);
    this.status = status;
    this.lost = lost;
  }
}

const LOST = "The server does not answer. It may have been stopped, or the connection is lost.";

/** Ask the server; resolves to what it says as text, or rejects with an `ApiError`. */
async function send(path, options) {
  let response, text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(LOST, { lost: true });
  }
  const { ok, status } = response;
  if (ok) return { text, status };
  let said = null;
  try {
    said = JSON.parse(text).error;
  } catch {
    // Not in the server's words.
  }
  throw new ApiError(typeof said === "string" ? said : `The server refused (status ${status}).`, { status });
}

/** Ask the server; resolves to its JSON, or rejects with an `ApiError`. */
async function call(method, path, body, signal) {
  const options = { method, signal, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const { text, status } = await send(path, options);
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError("The server's answer could not be read.", { status });
  }
}

const at = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
};

export const site = () => call("GET", "/api/site");
export const rows = (query, signal) => call("GET", at("/api/rows", query), undefined, signal);
export const random = (low, high) => call("GET", at("/api/random", { low, high }));
export const predict = (body, signal) => call("POST", "/api/predict", body, signal);
export const goal = (body, signal) => call("POST", "/api/goal", body, signal);
export const curve = (body, signal) => call("POST", "/api/curve", body, signal);
export const ask = (body) => call("POST", "/api/questions", body);
export const questions = () => call("GET", "/api/questions");
export const question = (id) => call("GET", `/api/questions/${id}`);
export const stop = (id) => call("POST", `/api/questions/${id}/stop`);
export const remove = (id) => call("DELETE", `/api/questions/${id}`);
export const bookmarks = (id, answers) => call("PUT", `/api/questions/${id}/bookmarks`, { answers });
export const exportPath = (id, form) => `/api/questions/${id}/export/${form}`;
export const exportText = async (id, form) => (await send(exportPath(id, form))).text;

/** Return a function like `ask` that forgets older calls: only the newest is ever answered. */
export function newest(ask) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      const answer = await ask(...given, mine.signal);
      return mine === running ? answer : undefined;
    } catch (error) {
      if (mine !== running || error.name === "AbortError") return undefined;
      throw error;
    }
  };
}

const FINAL = new Set(["done", "failed"]);

/** Return whether a question is still being worked on. */
export const open = (question) => question !== null && !FINAL.has(question.state);

/**
 * Follow a question: `heard.whole(question)` and `heard.step(step)` until it has ended, by a stream of
 * events or, should that break, by asking again and again. Returns a function that stops following.
 */
export function follow(id, heard) {
  let over = false, timer = 0, misses = 0, queued = 0, begun = false;
  const source = new EventSource(`/api/questions/${id}/events`);
  const end = () => {
    over = true;
    source.close();
    clearTimeout(timer);
    clearTimeout(queued);
  };
  const whole = (found) => {
    if (over) return;
    if (!open(found)) end();
    heard.whole(found);
    clearTimeout(queued); // its place in the queue is no event
    if (!over && !timer && found.state === "waiting") queued = setTimeout(look, 2000);
  };
  const look = () => question(id).then((found) => begun || timer || found.steps?.length || whole(found), () => {});
  const poll = async () => {
    try {
      const found = await question(id);
      if (misses) heard.back?.();
      misses = 0;
      whole(found);
    } catch (error) {
      if (over) return;
      if (!error.lost) {
        end();
        heard.gone(error);
        return;
      }
      misses += 1;
      heard.lost(error);
    }
    if (!over) timer = setTimeout(poll, Math.min(1000 * 2 ** misses, 15000));
  };
  source.addEventListener("snapshot", (event) => whole(JSON.parse(event.data)));
  source.addEventListener("end", (event) => whole(JSON.parse(event.data)));
  source.addEventListener("step", (event) => {
    begun = true;
    if (!over) heard.step(JSON.parse(event.data));
  });
  source.onerror = () => {
    source.close();
    if (!over && !timer) poll();
  };
  return end;
}
