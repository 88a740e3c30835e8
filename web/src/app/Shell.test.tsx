import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { broker, overview, topicPage } from "../test/cluster";
import { expectAccessible, renderApp } from "../test/render";
import { fakeServer, noContent, problem, SESSION } from "../test/server";

const ROUTES = { "GET /overview": overview(), "GET /brokers": [broker(1)], "GET /topics": topicPage([]) };

it("links to every page and marks the current one", async () => {
  fakeServer(ROUTES);
  renderApp("/brokers");
  const pages = await screen.findByRole("navigation", { name: "Pages" });
  const links = within(pages).getAllByRole("link").slice(1);
  expect(links.map((link) => link.textContent)).toEqual(["Overview", "Topics", "Consumer groups", "Transactions", "Brokers", "Data pipeline", "Metadata", "Access"]);
  expect(links.filter((link) => link.getAttribute("aria-current") === "page").map((link) => link.textContent)).toEqual(["Brokers"]);
  await expectAccessible();
});

it("opens pages and the search by shortcuts, but not while a field has the focus", async () => {
  fakeServer(ROUTES);
  const { router } = renderApp("/");
  await screen.findByRole("heading", { name: "Overview" });
  await userEvent.keyboard("gb");
  const search = await screen.findByRole("searchbox", { name: "Search brokers" });
  await userEvent.keyboard("/");
  expect(search).toHaveFocus();
  await userEvent.keyboard("gt");
  expect(search).toHaveValue("gt");
  expect(router.state.location.pathname).toBe("/brokers");
});

it("shows the shortcuts, and can disable them", async () => {
  fakeServer(ROUTES);
  const { router } = renderApp("/");
  await screen.findByRole("heading", { name: "Overview" });
  await userEvent.keyboard("?");
  const dialog = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
  expect(within(dialog).getByText("Go to Topics")).toBeVisible();
  await userEvent.click(within(dialog).getByRole("switch"));
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await userEvent.keyboard("gb");
  expect(router.state.location.pathname).toBe("/");
});

it("switches between dark and light mode, and stores the choice", async () => {
  fakeServer(ROUTES);
  renderApp("/");
  await userEvent.click(await screen.findByRole("button", { name: "Switch to dark mode" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "dark");
  expect(localStorage.getItem("mantine-color-scheme-value")).toBe("dark");
  await userEvent.click(screen.getByRole("button", { name: "Switch to light mode" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "light");
});

it.each([
  ["ends the session", noContent],
  ["has no such session any more", problem(401, "signed-out", "Not signed in.")],
])("logs out when the console %s", async (_, response) => {
  const server = fakeServer({ ...ROUTES, "DELETE /session": response });
  renderApp("/");
  await userEvent.click(await screen.findByRole("button", { name: "Log out" }));
  expect(await screen.findByRole("button", { name: "Log in" })).toBeVisible();
  expect(server.of("DELETE /session")[0]?.headers["x-csrf-token"]).toBe(SESSION.csrfToken);
});

it("shows a message for an unknown page", async () => {
  fakeServer(ROUTES);
  renderApp("/nowhere");
  expect(await screen.findByText("Page /nowhere not found.")).toBeVisible();
  await userEvent.click(screen.getByRole("link", { name: "Go to Overview" }));
  expect(await screen.findByRole("heading", { name: "Overview" })).toBeVisible();
});

it("shows the error when the session cannot be fetched", async () => {
  const server = fakeServer({ "GET /session": problem(503, "unreachable", "The console is shutting down.") });
  renderApp("/");
  expect(await screen.findByText("The console is shutting down.")).toBeVisible();
  server.set("GET /session", { ...SESSION, username: null });
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("button", { name: "Log in" })).toBeVisible();
});
