import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { broker, overview, topicPage } from "../test/cluster";
import { expectAccessible, renderApp } from "../test/render";
import { fakeServer, noContent, problem, SESSION } from "../test/server";

const ROUTES = { "GET /overview": overview(), "GET /brokers": [broker(1)], "GET /topics": topicPage([]) };

it("leads to every page, and marks where one is", async () => {
  fakeServer(ROUTES);
  renderApp("/brokers");
  const pages = await screen.findByRole("navigation", { name: "Pages" });
  const links = within(pages).getAllByRole("link").slice(1);
  expect(links.map((link) => link.textContent)).toEqual(["Overview", "Topics", "Consumer groups", "Brokers", "Data pipeline", "Metadata", "Access"]);
  expect(links.filter((link) => link.getAttribute("aria-current") === "page").map((link) => link.textContent)).toEqual(["Brokers"]);
  await expectAccessible();
});

it("goes to pages and to the search by keys, but not while somebody types", async () => {
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

it("shows the keys, and can be told to leave them alone", async () => {
  fakeServer(ROUTES);
  const { router } = renderApp("/");
  await screen.findByRole("heading", { name: "Overview" });
  await userEvent.keyboard("?");
  const dialog = await screen.findByRole("dialog", { name: "Keys" });
  expect(within(dialog).getByText("Go to Topics")).toBeVisible();
  await userEvent.click(within(dialog).getByRole("switch"));
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await userEvent.keyboard("gb");
  expect(router.state.location.pathname).toBe("/");
});

it("turns dark and light, and remembers it", async () => {
  fakeServer(ROUTES);
  renderApp("/");
  await userEvent.click(await screen.findByRole("button", { name: "Turn dark" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "dark");
  expect(localStorage.getItem("mantine-color-scheme-value")).toBe("dark");
  await userEvent.click(screen.getByRole("button", { name: "Turn light" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "light");
});

it.each([
  ["is told", noContent],
  ["has forgotten the session already", problem(401, "signed-out", "Nobody is signed in.")],
])("logs out when the console %s", async (_, answer) => {
  const server = fakeServer({ ...ROUTES, "DELETE /session": answer });
  renderApp("/");
  await userEvent.click(await screen.findByRole("button", { name: "Log out" }));
  expect(await screen.findByRole("button", { name: "Log in" })).toBeVisible();
  expect(server.of("DELETE /session")[0]?.headers["x-csrf-token"]).toBe(SESSION.csrfToken);
});

it("says that there is no such page", async () => {
  fakeServer(ROUTES);
  renderApp("/nowhere");
  expect(await screen.findByText("There is no page at /nowhere.")).toBeVisible();
  await userEvent.click(screen.getByRole("link", { name: "Go to the overview" }));
  expect(await screen.findByRole("heading", { name: "Overview" })).toBeVisible();
});

it("says what is wrong when the console cannot be reached at all", async () => {
  const server = fakeServer({ "GET /session": problem(503, "unreachable", "The console is going down.") });
  renderApp("/");
  expect(await screen.findByText("The console is going down.")).toBeVisible();
  server.set("GET /session", { ...SESSION, username: null });
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("button", { name: "Log in" })).toBeVisible();
});
