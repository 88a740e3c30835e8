/** A console's API that tests write down: answers by method and path, and what was asked. */
import { vi } from "vitest";

import type { Session } from "../api/contract";

export const SESSION: Session = {
  isConfigured: true,
  username: "ada",
  csrfToken: "token-of-ada",
  expiresAtMs: Date.now() + 3_600_000,
  version: "1.2.3",
};

export interface Asked {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
  headers: Record<string, string>;
}

/** An answer that is not a success, or that has no content. */
export class Answer {
  constructor(
    readonly status: number,
    readonly body?: unknown,
    readonly headers: Record<string, string> = {},
  ) {}
}

export const problem = (status: number, error: string, message: string, headers = {}) => new Answer(status, { error, message }, headers);
export const noContent = new Answer(204);

type Handler = unknown | ((asked: Asked) => unknown);

export interface FakeServer {
  asked: Asked[];
  /** The requests of one kind so far: of("POST /topics"). */
  of: (route: string) => Asked[];
  /** Answers differently from now on. */
  set: (route: string, handler: Handler) => void;
}

/** Routes such as "GET /topics/orders"; a value is the answer, a function makes it. */
export function fakeServer(routes: Record<string, Handler>): FakeServer {
  const table: Record<string, Handler> = { "GET /session": SESSION, ...routes };
  const asked: Asked[] = [];

  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    const url = new URL(address, "http://console");
    const path = url.pathname.replace("/api/v1", "");
    const one: Asked = {
      method: init.method ?? "GET",
      path,
      query: Object.fromEntries(url.searchParams),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
      headers: Object.fromEntries(new Headers(init.headers)),
    };
    asked.push(one);
    const handler = table[`${one.method} ${decodeURIComponent(path)}`];
    const made = typeof handler === "function" ? await handler(one) : handler;
    const answer = made instanceof Answer ? made : made === undefined ? problem(404, "not-found", `No test answers ${one.method} ${path}.`) : new Answer(200, made);
    return new Response(answer.status === 204 ? null : JSON.stringify(answer.body), { status: answer.status, headers: answer.headers });
  });

  return {
    asked,
    of: (route) => asked.filter((one) => `${one.method} ${decodeURIComponent(one.path)}` === route),
    set: (route, handler) => {
      table[route] = handler;
    },
  };
}
