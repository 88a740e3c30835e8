import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { overview, topic, topicPage } from "../../test/cluster";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, noContent, problem, type RecordedRequest } from "../../test/server";

const PAGE = topicPage([topic("orders"), topic("payments", { leaderlessCount: 2, recordCount: null }), topic("__offsets", { internal: true })], { total: 120 });
const ROUTES = { "GET /overview": overview(), "GET /topics": PAGE };

it("lists topics", async () => {
  const server = fakeServer(ROUTES);
  renderApp("/topics");
  const table = await screen.findByRole("table", { name: "Topics" });
  const [, orders, payments] = within(table).getAllByRole("row");
  expect(orders).toHaveTextContent("2 KiB");
  expect(payments).toHaveTextContent("2 without a leader");
  expect(payments).toHaveTextContent("–");
  expect(server.of("GET /topics")[0]?.query).toEqual({ sort: "name", order: "asc", page: "1", size: "50", internal: "false" });
  expect(screen.queryByRole("button", { name: "Delete __offsets" })).toBeNull();
  await expectAccessible();
});

it("searches, sorts and paginates on the server, and keeps the view in the URL", async () => {
  const server = fakeServer(ROUTES);
  const { router } = renderApp("/topics");
  await userEvent.click(await screen.findByRole("button", { name: "Size" }));
  await userEvent.click(screen.getByRole("button", { name: "page 2" }));
  await waitFor(() => expect(server.of("GET /topics").at(-1)?.query).toMatchObject({ sort: "size", order: "desc", page: "2" }));
  await userEvent.type(screen.getByRole("searchbox", { name: "Search topics" }), "pay");
  await waitFor(() => expect(server.of("GET /topics").at(-1)?.query).toMatchObject({ search: "pay", page: "1" }));
  await userEvent.click(screen.getByRole("switch", { name: "Show internal topics" }));
  await waitFor(() => expect(server.of("GET /topics").at(-1)?.query).toMatchObject({ internal: "true", search: "pay" }));
  expect(router.state.location.search).toBe("?sort=size&order=desc&search=pay&internal=true");
});

it("starts with the view in the URL", async () => {
  const server = fakeServer(ROUTES);
  renderApp("/topics?search=ord&page=3&sort=records&order=desc&size=25");
  await screen.findByRole("table", { name: "Topics" });
  expect(server.of("GET /topics")[0]?.query).toMatchObject({ search: "ord", page: "3", sort: "records", order: "desc", size: "25" });
});

it("creates a topic and opens its page", async () => {
  const server = fakeServer({ ...ROUTES, "POST /topics": ({ body }: RecordedRequest) => topic((body as { name: string }).name) });
  const { router } = renderApp("/topics");
  await userEvent.click(await screen.findByRole("button", { name: "Create a topic" }));
  const dialog = await screen.findByRole("dialog", { name: "Create a topic" });
  await expectAccessible();
  const name = within(dialog).getByRole("textbox", { name: "Name" });
  await userEvent.type(name, "bad name");
  expect(within(dialog).getByText("Only letters, digits, dots, underscores and dashes.")).toBeVisible();
  expect(within(dialog).getByRole("button", { name: "Create" })).toBeDisabled();
  await userEvent.clear(name);
  await userEvent.type(name, "good.name");
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Partitions" }), "6");
  await userEvent.click(within(dialog).getByRole("button", { name: "Add config" }));
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Name of config 1" }), "segment.bytes");
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Value of config 1" }), "1048576");
  await userEvent.click(within(dialog).getByRole("button", { name: "Create" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/topics/good.name"));
  expect(server.of("POST /topics")[0]?.body).toEqual({ name: "good.name", partitionCount: 6, configs: { "segment.bytes": "1048576" } });
});

it("shows the error when a topic cannot be created", async () => {
  fakeServer({ ...ROUTES, "POST /topics": problem(409, "conflict", "Topic 'orders' already exists. Choose another name.") });
  renderApp("/topics");
  await userEvent.click(await screen.findByRole("button", { name: "Create a topic" }));
  const dialog = await screen.findByRole("dialog", { name: "Create a topic" });
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Name" }), "orders{Enter}");
  expect(await within(dialog).findByRole("alert")).toHaveTextContent("Choose another name.");
});

it("deletes a topic after its name is typed", async () => {
  const server = fakeServer({ ...ROUTES, "DELETE /topics/orders": noContent });
  renderApp("/topics");
  await userEvent.click(await screen.findByRole("button", { name: "Delete orders" }));
  const dialog = await screen.findByRole("dialog", { name: "Delete a topic" });
  server.set("GET /topics", topicPage([]));
  await userEvent.type(within(dialog).getByRole("textbox", { name: /Type orders/ }), "orders");
  await userEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
  expect(await screen.findByText("Topic orders deleted.")).toBeVisible();
  expect(await screen.findByText("There are no topics yet.")).toBeVisible();
  expect(server.of("DELETE /topics/orders")[0]?.body).toEqual({ confirm: "orders" });
});
