/**
 * Client of the console's REST API.
 *
 * Invariants: every request other than GET carries the CSRF token of the session; every error response becomes
 * an ApiError with the server's message; a 401 response calls the session end listener.
 */
import type { Problem, Session } from "./contract";

const ROOT = "/api/v1";
const TIMEOUT_MS = 35_000;

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
  /** Long-running requests such as a drain set a longer timeout. */
  timeoutMs?: number;
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

function urlOf(path: string, query: Record<string, QueryValue> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const encoded = params.toString();
  return encoded ? `${ROOT}${path}?${encoded}` : `${ROOT}${path}`;
}

async function errorFrom(response: Response): Promise<ApiError> {
  const after = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const seconds = Number.isFinite(after) ? after : null;
  try {
    const problem = (await response.json()) as Problem;
    if (problem.message) return new ApiError(response.status, problem.error, problem.message, seconds);
  } catch {
    // Not a response of the console, but for example of a proxy.
  }
  return new ApiError(response.status, "unknown", `The console responded with status ${response.status}. Try again in a moment.`, seconds);
}

async function send(method: Method, path: string, options: Options): Promise<Response> {
  const limit = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  try {
    return await fetch(urlOf(path, options.query), {
      method,
      headers,
      credentials: "same-origin",
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (limit.aborted) throw new ApiError(0, "timeout", "The console did not answer in time. Try again in a moment.");
    throw new ApiError(0, "unreachable", "The console cannot be reached. Check that it is running and that the network connection works.");
  }
}

async function request<T>(method: Method, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  if (!response.ok) {
    const error = await errorFrom(response);
    if (response.status === 401 && path !== "/session") sessionEnded();
    throw error;
  }
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

export const api = {
  get: <T>(path: string, options?: Options) => request<T>("GET", path, options),
  post: <T>(path: string, body?: unknown, options?: Options) => request<T>("POST", path, { ...options, body }),
  put: <T>(path: string, body?: unknown, options?: Options) => request<T>("PUT", path, { ...options, body }),
  delete: <T = void>(path: string, body?: unknown, options?: Options) => request<T>("DELETE", path, { ...options, body }),
};
