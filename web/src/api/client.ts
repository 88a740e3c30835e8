/**
 * The one place that talks to the console's API.
 *
 * The law: every request that changes something carries the CSRF token of the session, every answer that is
 * not a success becomes an ApiError with the sentence of the server, and a session that has ended is told to
 * whoever listens, once for all pages.
 */
import type { Problem, Session } from "./contract";

const ROOT = "/api/v1";
const TIME_LIMIT_MS = 35_000;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

type Method = "GET" | "POST" | "PUT" | "DELETE";
type QueryValue = string | number | boolean | null | undefined;

interface Options {
  body?: unknown;
  query?: Record<string, QueryValue>;
  signal?: AbortSignal;
  /** A drain takes as long as its deadline; all others are answered within half a minute. */
  timeLimitMs?: number;
}

let csrfToken: string | null = null;
let sessionEnded: () => void = () => {};

export function rememberSession(session: Session): void {
  csrfToken = session.csrfToken;
}

export function onSessionEnd(listener: () => void): () => void {
  sessionEnded = listener;
  return () => {
    sessionEnded = () => {};
  };
}

/** A path with its parameters encoded: at`/topics/${name}`. */
export function at(pieces: TemplateStringsArray, ...parameters: (string | number)[]): string {
  return pieces.reduce((path, piece, index) => path + encodeURIComponent(String(parameters[index - 1])) + piece);
}

function address(path: string, query: Record<string, QueryValue> = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") words.set(name, String(value));
  }
  const text = words.toString();
  return text ? `${ROOT}${path}?${text}` : `${ROOT}${path}`;
}

async function problemOf(answer: Response): Promise<ApiError> {
  const after = Number(answer.headers.get("Retry-After") ?? Number.NaN);
  const seconds = Number.isFinite(after) ? after : null;
  try {
    const problem = (await answer.json()) as Problem;
    if (problem.message) return new ApiError(answer.status, problem.error, problem.message, seconds);
  } catch {
    // Not from the console: a proxy in between, or a server that is going down.
  }
  return new ApiError(answer.status, "unknown", `The console answered with status ${answer.status}. Try again in a moment.`, seconds);
}

async function send(method: Method, path: string, options: Options): Promise<Response> {
  const limit = AbortSignal.timeout(options.timeLimitMs ?? TIME_LIMIT_MS);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  try {
    return await fetch(address(path, options.query), {
      method,
      headers,
      credentials: "same-origin",
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (limit.aborted) throw new ApiError(0, "timeout", "The console did not answer in time. Try again in a moment.");
    throw new ApiError(0, "unreachable", "The console cannot be reached. Check that it runs, and your connection to it.");
  }
}

async function request<T>(method: Method, path: string, options: Options = {}): Promise<T> {
  const answer = await send(method, path, options);
  if (!answer.ok) {
    const problem = await problemOf(answer);
    if (answer.status === 401 && path !== "/session") sessionEnded();
    throw problem;
  }
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

export const api = {
  get: <T>(path: string, options?: Options) => request<T>("GET", path, options),
  post: <T>(path: string, body?: unknown, options?: Options) => request<T>("POST", path, { ...options, body }),
  put: <T>(path: string, body?: unknown, options?: Options) => request<T>("PUT", path, { ...options, body }),
  delete: <T = void>(path: string, body?: unknown, options?: Options) => request<T>("DELETE", path, { ...options, body }),
};
