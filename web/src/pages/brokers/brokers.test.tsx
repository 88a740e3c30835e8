import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { BrokerDetail } from "../../api/contract";
import { broker, NOW, overview } from "../../test/cluster";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";

const DETAIL: BrokerDetail = {
  broker: broker(2, { problems: { S3: "Writes are slow." }, storeHealth: "degraded" }),
  partitions: [
    { topic: "orders", partition: 10, state: "online", movingTo: null, leaderEpoch: 1, startOffset: 0, rolledOffset: 90, highWatermark: 100, endOffset: 100, sizeBytes: 2048 },
    { topic: "orders", partition: 9, state: "online", movingTo: 1, leaderEpoch: 1, startOffset: 0, rolledOffset: 0, highWatermark: 0, endOffset: 0, sizeBytes: 0 },
  ],
  partitionTotal: 1_500,
  throughput: [],
};

const ROUTES = { "GET /overview": overview(), "GET /brokers": [broker(1), broker(2, { state: "gone", seenAtMs: NOW - 61_000 })], "GET /brokers/2": DETAIL };

it("lists the brokers", async () => {
  fakeServer(ROUTES);
  renderApp("/brokers");
  const table = await screen.findByRole("table", { name: "Brokers" });
  const [, first, second] = within(table).getAllByRole("row");
  expect(first).toHaveTextContent("controller");
  expect(first).toHaveTextContent("1 h");
  expect(second).toHaveTextContent("gone");
  expect(second).toHaveTextContent("last seen 1 min ago");
  await expectAccessible();
});

it("rebalances on request, and lists the moves", async () => {
  const moves = [
    { topic: "orders", partition: 3, source: 1, target: 2, done: true },
    { topic: "orders", partition: 4, source: 1, target: 2, done: false },
  ];
  const server = fakeServer({ ...ROUTES, "POST /rebalance": { moves } });
  renderApp("/brokers");
  await userEvent.click(await screen.findByRole("button", { name: "Rebalance" }));
  const dialog = await screen.findByRole("dialog", { name: "Rebalance the brokers" });
  expect(server.of("POST /rebalance")).toHaveLength(0);
  await userEvent.click(within(dialog).getByRole("button", { name: "Rebalance" }));
  expect(await within(dialog).findByText("1 partition moved, 1 pending.")).toBeVisible();
  expect(within(dialog).getByText("orders 4: from broker 1 to broker 2 (pending)")).toBeVisible();
  expect(server.of("POST /rebalance")).toHaveLength(1);
});

it("shows a broker, its problems and its partitions", async () => {
  fakeServer(ROUTES);
  renderApp("/brokers/2");
  const table = await screen.findByRole("table", { name: "Partitions" });
  expect(screen.getByRole("heading", { level: 1, name: "Broker 2" })).toBeVisible();
  expect(screen.getByText("Writes are slow.")).toBeVisible();
  expect(screen.getByText("Showing 2 of 1,500 partitions; the topic pages show all.")).toBeVisible();
  const rows = within(table).getAllByRole("row").slice(1);
  expect(rows.map((row) => within(row).getAllByRole("cell")[1]?.textContent)).toEqual(["9", "10"]);
  expect(rows[0]).toHaveTextContent("online, to broker 1");
  await expectAccessible();
});

it("drains with reason and deadline, and lists pending partitions", async () => {
  const server = fakeServer({
    ...ROUTES,
    "POST /brokers/2/drain": { broker: 2, drained: [{ topic: "orders", partition: 10 }, { topic: "orders", partition: 9 }], pending: [{ topic: "clicks", partition: 0 }] },
  });
  renderApp("/brokers/2");
  await userEvent.click(await screen.findByRole("button", { name: "Drain" }));
  const dialog = await screen.findByRole("dialog", { name: "Drain broker 2" });
  await userEvent.type(within(dialog).getByRole("textbox", { name: "Reason" }), "new disk");
  const deadline = within(dialog).getByRole("textbox", { name: "Deadline in seconds" });
  await userEvent.clear(deadline);
  await userEvent.type(deadline, "90");
  await userEvent.click(within(dialog).getByRole("button", { name: "Drain" }));
  expect(await within(dialog).findByText(/did not transfer all partitions within the deadline/)).toBeVisible();
  expect(within(dialog).getByText("orders: 9, 10")).toBeVisible();
  expect(within(dialog).getByText("Pending: 1 partition")).toBeVisible();
  expect(server.of("POST /brokers/2/drain")[0]?.body).toEqual({ reason: "new disk", deadlineSeconds: 90 });
});

it("flushes, and shows the error on failure", async () => {
  const server = fakeServer({ ...ROUTES, "POST /brokers/2/flush": problem(503, "unreachable", "Broker 2 is unreachable. Try again.") });
  renderApp("/brokers/2");
  await userEvent.click(await screen.findByRole("button", { name: "Flush" }));
  const dialog = await screen.findByRole("dialog", { name: "Flush broker 2" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Flush" }));
  expect(await within(dialog).findByRole("alert")).toHaveTextContent("Broker 2 is unreachable. Try again.");
  server.set("POST /brokers/2/flush", { partitions: [] });
  await userEvent.click(within(dialog).getByRole("button", { name: "Flush" }));
  expect(await within(dialog).findByText(/Nothing to flush/)).toBeVisible();
  await userEvent.click(within(dialog).getAllByRole("button", { name: "Close" }).at(-1) as HTMLElement);
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it("offers no actions for a broker that is gone", async () => {
  fakeServer({ ...ROUTES, "GET /brokers/2": { ...DETAIL, broker: broker(2, { state: "gone" }) } });
  renderApp("/brokers/2");
  await screen.findByRole("table", { name: "Partitions" });
  expect(screen.queryByRole("button", { name: "Drain" })).toBeNull();
});

it("shows the error for an unknown broker", async () => {
  fakeServer({ ...ROUTES, "GET /brokers/7": problem(404, "not-found", "Unknown broker 7.") });
  renderApp("/brokers/7");
  expect(await screen.findByRole("alert")).toHaveTextContent("Unknown broker 7.");
});
