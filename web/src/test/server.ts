/** A fake of the console's API: responses by method and path, and a record of all requests. */
import { vi } from "vitest";

import type { Session } from "../api/contract";

export const SESSION: Session = {
  isConfigured: true,
  username: "ada",
  csrfToken: "token-of-ada",
  expiresAtMs: Date.now() + 3_600_000,
  version: "1.2.3",
};

export interface RecordedRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
  headers: Record<string, string>;
}

/** A response that is not a success, or that has no content. */
export class FakeResponse {
  constructor(
    readonly status: number,
    readonly body?: unknown,
    readonly headers: Record<string, string> = {},
  ) {}
}

export const problem = (status: number, error: string, message: string, headers = {}) => new FakeResponse(status, { error, message }, headers);
export const noContent = new FakeResponse(204);

type Handler = unknown | ((request: RecordedRequest) => unknown);

export interface FakeServer {
  requests: RecordedRequest[];
  /** The requests of one kind so far: of("POST /topics"). */
  of: (route: string) => RecordedRequest[];
  /** Replaces the response of a route. */
  set: (route: string, handler: Handler) => void;
}

/** Routes such as "GET /topics/orders"; a handler is the response, or a function that returns it. */
export function fakeServer(routes: Record<string, Handler>): FakeServer {
  const table: Record<string, Handler> = { "GET /session": SESSION, ...routes };
  const requests: RecordedRequest[] = [];

  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    const url = new URL(address, "http://console");
    const path = url.pathname.replace("/api/v1", "");
    const request: RecordedRequest = {
      method: init.method ?? "GET",
      path,
      query: Object.fromEntries(url.searchParams),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
      headers: Object.fromEntries([...new Headers(init.headers)].map(([name, value]) => [name.toLowerCase(), value])),
    };
    requests.push(request);
    const handler = table[`${request.method} ${decodeURIComponent(path)}`];
    const result = typeof handler === "function" ? await handler(request) : handler;
    const response = result instanceof FakeResponse ? result : result === undefined ? problem(404, "not-found", `The test has no handler for ${request.method} ${path}.`) : new FakeResponse(200, result);
    return new Response(response.status === 204 ? null : JSON.stringify(response.body), { status: response.status, headers: response.headers });
  });

  return {
    requests,
    of: (route) => requests.filter((request) => `${request.method} ${decodeURIComponent(request.path)}` === route),
    set: (route, handler) => {
      table[route] = handler;
    },
  };
}
