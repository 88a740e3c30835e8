import { expect, it, vi } from "vitest";

import { SESSION, fakeServer, noContent, problem } from "../test/server";
import { ApiError, api, at, onSessionEnd, rememberSession } from "./client";

it("encodes what goes into a path", () => {
  expect(at`/groups/${"a/b c"}/reset`).toBe("/groups/a%2Fb%20c/reset");
  expect(at`/brokers/${7}`).toBe("/brokers/7");
});

it("leaves out of a query what was not given", async () => {
  const server = fakeServer({ "GET /topics": {} });
  await api.get("/topics", { query: { search: "", page: 2, internal: false, state: undefined } });
  expect(server.of("GET /topics")[0]?.query).toEqual({ page: "2", internal: "false" });
});

it("sends the token with what changes something, and only with that", async () => {
  const server = fakeServer({ "GET /brokers": [], "DELETE /topics/orders": noContent });
  rememberSession(SESSION);
  await api.get("/brokers");
  await api.delete(at`/topics/${"orders"}`, { confirm: "orders" });
  expect(server.asked.map(({ headers }) => headers["x-csrf-token"])).toEqual([undefined, SESSION.csrfToken]);
  expect(server.asked[1]?.body).toEqual({ confirm: "orders" });
});

it("throws the sentence of the server", async () => {
  fakeServer({ "POST /session": problem(429, "throttled", "Too many attempts.", { "Retry-After": "17" }) });
  const error = await api.post("/session", {}).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 429, code: "throttled", message: "Too many attempts.", retryAfterSeconds: 17 });
});

it("has a sentence of its own for answers that are not the console's", async () => {
  vi.stubGlobal("fetch", async () => new Response("<html>Bad gateway</html>", { status: 502 }));
  await expect(api.get("/overview")).rejects.toMatchObject({ status: 502, message: expect.stringContaining("502") });
});

it("says that nobody answers", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("Failed to fetch");
  });
  await expect(api.get("/overview")).rejects.toMatchObject({ status: 0, code: "unreachable" });
});

it("tells that a session has ended, but not that a password was wrong", async () => {
  fakeServer({ "GET /brokers": problem(401, "signed-out", "Nobody is signed in."), "POST /session": problem(401, "wrong-credentials", "Wrong.") });
  const ended = vi.fn();
  const forget = onSessionEnd(ended);
  await expect(api.post("/session", {})).rejects.toThrow("Wrong.");
  expect(ended).not.toHaveBeenCalled();
  await expect(api.get("/brokers")).rejects.toThrow("Nobody is signed in.");
  expect(ended).toHaveBeenCalledOnce();
  forget();
});
