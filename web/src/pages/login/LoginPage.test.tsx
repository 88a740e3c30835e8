import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { overview } from "../../test/cluster";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem, SESSION } from "../../test/server";

const LOGGED_OUT = { ...SESSION, username: null, csrfToken: null, expiresAtMs: null };

async function fill(password = "secret") {
  await userEvent.type(await screen.findByRole("textbox", { name: "User name" }), "ada");
  await userEvent.type(screen.getByLabelText(/^Password/), password);
}

it("leads to the requested page after login", async () => {
  const server = fakeServer({ "GET /session": LOGGED_OUT, "POST /session": SESSION, "GET /overview": overview(), "GET /brokers": [] });
  const { router } = renderApp("/brokers?search=7");
  await fill();
  expect(document.title).toBe("Log in · Kafscale");
  await expectAccessible();
  await userEvent.click(screen.getByRole("button", { name: "Log in" }));

  expect(await screen.findByRole("heading", { name: "Brokers" })).toBeVisible();
  expect(router.state.location.pathname + router.state.location.search).toBe("/brokers?search=7");
  expect(server.of("POST /session")[0]?.body).toEqual({ username: "ada", password: "secret" });
  expect(server.requests.filter(({ path }) => path !== "/session").length).toBeGreaterThan(0);
});

it("requests no data before login", async () => {
  const server = fakeServer({ "GET /session": LOGGED_OUT });
  renderApp("/");
  await screen.findByRole("button", { name: "Log in" });
  expect(server.requests.map(({ path }) => path)).toEqual(["/session"]);
});

it("is disabled while no credentials are configured", async () => {
  fakeServer({ "GET /session": { ...LOGGED_OUT, isConfigured: false } });
  renderApp("/");
  const warning = await screen.findByRole("alert", { name: "Access is disabled" });
  expect(warning).toHaveTextContent("KAFSCALE_UI_USERNAME");
  expect(warning).toHaveTextContent("KAFSCALE_UI_PASSWORD");
  expect(screen.getByRole("textbox", { name: "User name" })).toBeDisabled();
  expect(screen.getByRole("button", { name: "Log in" })).toBeDisabled();
  await expectAccessible();
});

it("shows an error for wrong credentials, and clears the password", async () => {
  fakeServer({ "GET /session": LOGGED_OUT, "POST /session": problem(401, "wrong-credentials", "Wrong user name or password.") });
  renderApp("/");
  await fill("guess{Enter}");
  expect(await screen.findByText("Wrong user name or password.")).toBeVisible();
  expect(screen.getByLabelText(/^Password/)).toHaveValue("");
  expect(screen.getByRole("textbox", { name: "User name" })).toHaveValue("ada");
});

it("counts down after too many attempts", async () => {
  const server = fakeServer({ "GET /session": LOGGED_OUT, "POST /session": problem(429, "throttled", "Too many.", { "Retry-After": "2" }) });
  renderApp("/");
  await fill("guess{Enter}");
  expect(await screen.findByText(/Too many attempts. Try again in [12] s./)).toBeVisible();
  expect(screen.getByRole("button", { name: "Log in" })).toBeDisabled();
  await waitFor(() => expect(screen.queryByText(/Too many attempts/)).toBeNull());

  server.set("POST /session", SESSION);
  await userEvent.type(screen.getByLabelText(/^Password/), "right{Enter}");
  expect(await screen.findByRole("heading", { name: "Overview" })).toBeVisible();
});

it("appears when the session has ended", async () => {
  const server = fakeServer({ "GET /brokers": [], "GET /overview": overview() });
  const { router } = renderApp("/brokers");
  await screen.findByText("No brokers are registered.");
  server.set("GET /brokers", problem(401, "signed-out", "The session has ended."));
  expect(await screen.findByRole("button", { name: "Log in" })).toBeVisible();
  expect(router.state.location.pathname).toBe("/login");
});

it("does not redirect outside of the console", async () => {
  fakeServer({ "GET /overview": overview() });
  const { router } = renderApp("/login");
  await router.navigate("/login", { state: { from: "//evil.example" } });
  expect(await screen.findByRole("heading", { name: "Overview" })).toBeVisible();
  expect(router.state.location.pathname).toBe("/");
});
