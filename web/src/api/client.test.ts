import { expect, it, vi } from "vitest";

import { SESSION, fakeServer, noContent, problem } from "../test/server";
import { ApiError, api, at, onSessionEnd, rememberSession } from "./client";

it("encodes path parameters", () => {
  expect(at`/groups/${"a/b c"}/reset`).toBe("/groups/a%2Fb%20c/reset");
  expect(at`/brokers/${7}`).toBe("/brokers/7");
});

it("omits empty query parameters", async () => {
  const server = fakeServer({ "GET /topics": {} });
  await api.get("/topics", { query: { search: "", page: 2, internal: false, state: undefined } });
  expect(server.of("GET /topics")[0]?.query).toEqual({ page: "2", internal: "false" });
});

it("sends the CSRF token with requests other than GET only", async () => {
  const server = fakeServer({ "GET /brokers": [], "DELETE /topics/orders": noContent });
  rememberSession(SESSION);
  await api.get("/brokers");
  await api.delete(at`/topics/${"orders"}`, { confirm: "orders" });
  expect(server.requests.map(({ headers }) => headers["x-csrf-token"])).toEqual([undefined, SESSION.csrfToken]);
  expect(server.requests[1]?.body).toEqual({ confirm: "orders" });
});

it("throws an error with the server's message", async () => {
  fakeServer({ "POST /session": problem(429, "throttled", "Too many attempts.", { "Retry-After": "17" }) });
  const error = await api.post("/session", {}).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 429, code: "throttled", message: "Too many attempts.", retryAfterSeconds: 17 });
});

it("has its own message for responses that are not JSON", async () => {
  vi.stubGlobal("fetch", async () => new Response("<html>Bad gateway</html>", { status: 502 }));
  await expect(api.get("/overview")).rejects.toMatchObject({ status: 502, message: expect.stringContaining("502") });
});

it("throws an error when the console is unreachable", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("Failed to fetch");
  });
  await expect(api.get("/overview")).rejects.toMatchObject({ status: 0, code: "unreachable" });
});

it("calls the session end listener, but not for wrong credentials", async () => {
  fakeServer({ "GET /brokers": problem(401, "signed-out", "Not signed in."), "POST /session": problem(401, "wrong-credentials", "Wrong.") });
  const ended = vi.fn();
  const unsubscribe = onSessionEnd(ended);
  await expect(api.post("/session", {})).rejects.toThrow("Wrong.");
  expect(ended).not.toHaveBeenCalled();
  await expect(api.get("/brokers")).rejects.toThrow("Not signed in.");
  expect(ended).toHaveBeenCalledOnce();
  unsubscribe();
});
