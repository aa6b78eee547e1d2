// @ts-check
// Calls to the server: one function per route, errors as sentences, progress as a stream.

/**
 * @import {
 *   Cells, Curve, DataPage, DataRow, Menu, Prediction, Progress, Question, QuestionRequest, Site,
 *   Space, TargetMeaning,
 * } from "./types.js"
 */

/** An error with a message for the reader; `lost` if the server could not be reached. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, lost?: boolean}} [options]
   */
  constructor(message, { status = 0, lost = false } = {}) {
    super(message);
    this.status = status;
    this.lost = lost;
  }
}

const LOST = "The server does not answer. It may have been stopped, or the connection is lost.";

/**
 * Return any thrown value as an `ApiError`.
 * @param {unknown} error
 */
export const asApiError = (error) =>
  error instanceof ApiError
    ? error
    : new ApiError(error instanceof Error ? error.message : String(error));

/** @param {unknown} error */
const isAbort = (error) => error instanceof Error && error.name === "AbortError";

/**
 * Return the error sentence of a refused request.
 * @param {string} text  the body of the response
 * @param {number} status
 */
function errorText(text, status) {
  try {
    const { error } = JSON.parse(text);
    if (typeof error === "string") return error;
  } catch {
    // A proxy may answer with something else than the server's JSON.
  }
  return `The server refused (status ${status}).`;
}

/**
 * Send a request; resolves to the text of the response, or rejects with an `ApiError`.
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function send(path, options) {
  let response;
  let text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(LOST, { lost: true });
  }
  const { ok, status } = response;
  if (!ok) throw new ApiError(errorText(text, status), { status });
  return { text, status };
}

/**
 * Send JSON; resolves to the JSON of the response, or rejects with an `ApiError`.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function call(method, path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, signal, headers, body: JSON.stringify(body) };
  const { text, status } = await send(path, options);
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError("The server's answer could not be read.", { status });
  }
}

/**
 * Return a path with its query; absent values are left out.
 * @param {string} path
 * @param {Record<string, unknown>} query
 */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/**
 * @typedef {object} PredictRequest
 * @property {Cells} cells
 * @property {Cells | null} query
 * @property {Space | null} space
 * @property {string | null} target
 * @property {number} tolerance
 */

/** @returns {Promise<Site>} */
export const getSite = () => call("GET", "/api/site");

/** @type {(query: Record<string, unknown>, signal?: AbortSignal) => Promise<DataPage>} */
export const getRows = (query, signal) =>
  call("GET", withQuery("/api/rows", query), undefined, signal);

/** @type {(low: string, high: string) => Promise<DataRow>} */
export const getRandomRow = (low, high) => call("GET", withQuery("/api/random", { low, high }));

/** @type {(body: PredictRequest, signal?: AbortSignal) => Promise<Prediction>} */
export const predict = (body, signal) => call("POST", "/api/predict", body, signal);

/**
 * @type {(
 *   body: {target: string, output: number, tolerance: number}, signal?: AbortSignal,
 * ) => Promise<TargetMeaning>}
 */
export const getTarget = (body, signal) => call("POST", "/api/target", body, signal);

/**
 * @type {(
 *   body: {cells: Cells, feature: string, question: number | null, score: boolean},
 *   signal?: AbortSignal,
 * ) => Promise<Curve>}
 */
export const getCurve = (body, signal) => call("POST", "/api/curve", body, signal);

/** @type {(body: QuestionRequest) => Promise<Question>} */
export const postQuestion = (body) => call("POST", "/api/questions", body);

/** @returns {Promise<{questions: Question[]}>} */
export const getQuestions = () => call("GET", "/api/questions");

/** @type {(id: number) => Promise<Question>} */
export const getQuestion = (id) => call("GET", `/api/questions/${id}`);

/** @type {(id: number) => Promise<Menu>} */
export const getMenu = (id) => call("GET", `/api/questions/${id}/menu`);

/** @type {(id: number) => Promise<Question>} */
export const stopQuestion = (id) => call("POST", `/api/questions/${id}/stop`);

/** @type {(id: number) => Promise<null>} */
export const deleteQuestion = (id) => call("DELETE", `/api/questions/${id}`);

/** @type {(id: number, answers: number[]) => Promise<Question>} */
export const putBookmarks = (id, answers) =>
  call("PUT", `/api/questions/${id}/bookmarks`, { answers });

/** @type {(id: number, form: string) => string} */
export const exportPath = (id, form) => `/api/questions/${id}/export/${form}`;

/** @type {(id: number, form: string) => Promise<string>} */
export const getExport = async (id, form) => (await send(exportPath(id, form))).text;

/**
 * Return a function that aborts its earlier calls: an outdated call resolves to undefined.
 * @template Body, Found
 * @param {(body: Body, signal: AbortSignal) => Promise<Found>} request
 * @returns {(body: Body) => Promise<Found | undefined>}
 */
export function latest(request) {
  /** @type {AbortController | null} */
  let running = null;
  return async (body) => {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    try {
      const found = await request(body, mine.signal);
      return mine === running ? found : undefined;
    } catch (error) {
      if (mine !== running || isAbort(error)) return undefined;
      throw error;
    }
  };
}

/**
 * Return whether a question waits or runs.
 * @param {Question | null} question
 */
export const isOpen = (question) =>
  question !== null && question.state !== "done" && question.state !== "failed";

const QUEUE_POLL = 2000; // milliseconds between two looks at the place in the queue
const LONGEST_POLL = 15000; // milliseconds between two attempts to reach a lost server

/**
 * @typedef {object} Listener
 * @property {(question: Question) => void} question  the whole question, at first and at its end
 * @property {(progress: Progress) => void} step  one step of the search
 * @property {(error: ApiError) => void} lost  the server cannot be reached
 * @property {() => void} back  the server can be reached again
 * @property {(error: ApiError) => void} gone  the question no longer exists
 */

/** Follows a question to its end: by a stream of events or, if the stream breaks, by polling. */
class Follower {
  /**
   * @param {number} id
   * @param {Listener} listener
   */
  constructor(id, listener) {
    this.id = id;
    this.listener = listener;
    this.isOver = false;
    this.isPolling = false;
    this.hasSteps = false;
    this.nMisses = 0;
    this.timer = 0;
    this.source = new EventSource(`/api/questions/${id}/events`);
    this.source.addEventListener("snapshot", (event) => this.take(JSON.parse(event.data)));
    this.source.addEventListener("end", (event) => this.take(JSON.parse(event.data)));
    this.source.addEventListener("step", (event) => {
      this.hasSteps = true;
      if (!this.isOver) this.listener.step(JSON.parse(event.data));
    });
    this.source.onerror = () => {
      this.source.close();
      if (this.isOver || this.isPolling) return;
      this.isPolling = true;
      this.poll();
    };
  }

  /** Stop following. */
  end() {
    this.isOver = true;
    this.source.close();
    clearTimeout(this.timer);
  }

  /**
   * Report a question; the stream does not report its place in the queue, so ask for it.
   * @param {Question} question
   */
  take(question) {
    if (this.isOver) return;
    if (!isOpen(question)) this.end();
    this.listener.question(question);
    if (this.isOver || this.isPolling) return;
    clearTimeout(this.timer);
    if (question.state === "waiting") this.timer = setTimeout(() => this.lookAtQueue(), QUEUE_POLL);
  }

  async lookAtQueue() {
    try {
      const question = await getQuestion(this.id);
      const isStreaming = this.hasSteps || Boolean(question.steps?.length);
      if (!isStreaming && !this.isPolling) this.take(question);
    } catch {
      // The stream notices a lost connection.
    }
  }

  async poll() {
    try {
      const question = await getQuestion(this.id);
      if (this.nMisses) this.listener.back();
      this.nMisses = 0;
      this.take(question);
    } catch (thrown) {
      if (this.isOver) return;
      this.miss(asApiError(thrown));
    }
    if (this.isOver) return;
    const pause = Math.min(1000 * 2 ** this.nMisses, LONGEST_POLL);
    this.timer = setTimeout(() => this.poll(), pause);
  }

  /** @param {ApiError} error */
  miss(error) {
    if (error.lost) {
      this.nMisses += 1;
      this.listener.lost(error);
      return;
    }
    this.end();
    this.listener.gone(error);
  }
}

/**
 * Follow a question until it has ended; returns a function that stops following.
 * @param {number} id
 * @param {Listener} listener
 */
export function follow(id, listener) {
  const follower = new Follower(id, listener);
  return () => follower.end();
}
