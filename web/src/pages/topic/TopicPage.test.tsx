import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, noContent, problem } from "../../test/server";
import { config, DETAIL, partition } from "./fixtures";

describe("a topic", () => {
  it("shows its partitions with the records in the WAL", async () => {
    fakeServer({ "GET /topics/orders": DETAIL });
    renderApp("/topics/orders");
    const table = await screen.findByRole("table", { name: "Partitions" });
    const [, first] = within(table).getAllByRole("row");
    expect(first).toHaveTextContent("0onlineBroker 1010013030130" + "2 KiB");
    expect(screen.getByRole("link", { name: "Partitions" })).toHaveAttribute("aria-current", "page");
    await expectAccessible();
  });

  it("shows partitions without a leader", async () => {
    const { topic } = DETAIL;
    fakeServer({ "GET /topics/orders": { ...DETAIL, topic: { ...topic, leaderlessCount: 1 }, partitions: [partition(0, { leader: null })] } });
    renderApp("/topics/orders");
    expect(await screen.findByText("1 without a leader")).toBeInTheDocument();
    expect(screen.getByText("leaderless")).toBeInTheDocument();
  });

  it("shows how much of a compacted topic is dirty", async () => {
    fakeServer({ "GET /topics/orders": { ...DETAIL, topic: { ...DETAIL.topic, dirtyRatio: 0.37 } } });
    renderApp("/topics/orders");
    expect(await screen.findByText("Not compacted yet")).toBeInTheDocument();
    expect(screen.getByText("37%")).toBeInTheDocument();
  });

  it("shows the error for an unknown topic", async () => {
    fakeServer({ "GET /topics/lost": problem(404, "not-found", "Unknown topic 'lost'.") });
    renderApp("/topics/lost");
    expect(await screen.findByText("Unknown topic 'lost'.")).toBeInTheDocument();
  });

  it("is deleted after its name is typed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, "DELETE /topics/orders": noContent });
    const { router } = renderApp("/topics/orders");
    await user.click(await screen.findByRole("button", { name: "Delete" }));
    const dialog = await screen.findByRole("dialog");
    expect(within(dialog).getByRole("button", { name: "Delete topic" })).toBeDisabled();
    await user.type(within(dialog).getByRole("textbox"), "orders");
    await user.click(within(dialog).getByRole("button", { name: "Delete topic" }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/topics"));
    expect(server.of("DELETE /topics/orders")[0]?.body).toEqual({ confirm: "orders" });
  });

  it("gets more partitions", async () => {
    const user = userEvent.setup();
    const extended = { ...DETAIL, topic: { ...DETAIL.topic, partitionCount: 5 } };
    const server = fakeServer({ "GET /topics/orders": DETAIL, "POST /topics/orders/partitions": extended });
    renderApp("/topics/orders");
    await user.click(await screen.findByRole("button", { name: "Add partitions" }));
    const dialog = await screen.findByRole("dialog");
    const field = within(dialog).getByLabelText("Total partitions");
    await user.clear(field);
    await user.type(field, "5");
    await user.click(within(dialog).getByRole("button", { name: "Add partitions" }));
    expect(await screen.findByText("Topic orders now has 5 partitions.")).toBeInTheDocument();
    expect(server.of("POST /topics/orders/partitions")[0]?.body).toEqual({ partitionCount: 5 });
  });

  it("is flushed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, "POST /topics/orders/flush": { partitions: [{ topic: "orders", partition: 0 }] } });
    renderApp("/topics/orders");
    await user.click(await screen.findByRole("button", { name: "Flush" }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Flush" }));
    expect(await screen.findByText("1 partition of orders flushed to segments.")).toBeInTheDocument();
    expect(server.of("POST /topics/orders/flush")).toHaveLength(1);
  });
});

describe("segments", () => {
  const page = {
    partition: 1,
    total: 1,
    sizeBytes: 4096,
    page: 1,
    size: 50,
    items: [{ baseOffset: 0, lastOffset: 99, sizeBytes: 4096, createdAtMs: Date.now(), key: "ns/orders/1/segment-0.kfs", hasIndex: true }],
    wal: { fromOffset: 100, toOffset: 130, recordCount: 30, objectCount: 2, sizeBytes: 900 },
  };

  it("are those of the partition in the URL", async () => {
    const server = fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/segments": page });
    renderApp("/topics/orders?part=segments&partition=1");
    expect(await screen.findByText("ns/orders/1/segment-0.kfs")).toBeInTheDocument();
    expect(screen.getByText("30 records")).toBeInTheDocument();
    const bar = screen.getByRole("list", { name: /Storage of the records/ });
    expect(within(bar).getAllByRole("listitem").map((section) => section.getAttribute("aria-label"))).toEqual([
      "Segment: offsets 0 to 99, 4 KiB",
      "WAL, not yet in a segment: offsets 100 to 129, 900 B",
    ]);
    expect(server.of("GET /topics/orders/segments").every(({ query }) => query.partition === "1")).toBe(true);
    await expectAccessible();
  });

  it("of another partition can be selected", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/segments": page });
    renderApp("/topics/orders?part=segments");
    await user.selectOptions(await screen.findByLabelText("Partition"), "1");
    await waitFor(() => expect(server.of("GET /topics/orders/segments").at(-1)?.query.partition).toBe("1"));
  });
});

describe("consumers", () => {
  it("are listed with their lag, by partition when expanded", async () => {
    const user = userEvent.setup();
    const consumers = [{ group: "billing/eu", state: "Stable", memberCount: 2, lag: 7, lagByPartition: { "10": 4, "2": 3 } }];
    fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/consumers": consumers });
    renderApp("/topics/orders?part=consumers");
    expect(await screen.findByRole("link", { name: "billing/eu" })).toHaveAttribute("href", "/groups/billing%2Feu");
    await user.click(screen.getByRole("button", { name: "Show more" }));
    const rows = within(screen.getByRole("table", { name: "Lag of billing/eu by partition" })).getAllByRole("row");
    expect(rows.map((row) => row.textContent)).toEqual(["PartitionLag", "23", "104"]);
    await expectAccessible();
  });
});

describe("producers", () => {
  it("are listed with their open transactions", async () => {
    const producer = { topic: "orders", partition: 2, producerId: 4000, producerEpoch: 7, lastSequence: 11, lastTimestampMs: Date.now() - 60_500, coordinatorEpoch: 1, transactionStartOffset: 1042 };
    const idle = { ...producer, partition: 10, lastSequence: null, coordinatorEpoch: null, transactionStartOffset: null };
    fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/producers": [idle, producer] });
    renderApp("/topics/orders?part=producers");
    const rows = within(await screen.findByRole("table", { name: "Producers" })).getAllByRole("row");
    expect(rows.slice(1).map((row) => row.textContent)).toEqual(["240007111 min ago1,042", "1040007–1 min ago–"]);
    await expectAccessible();
  });
});

describe("configs", () => {
  const configs = [
    config("retention.ms"),
    config("segment.bytes", { value: "100", default: "100", isSet: false, documentation: "The size of a segment." }),
    config("preallocate", { value: "false", default: "false", isSet: false, readOnly: true, type: "BOOLEAN" }),
  ];

  it("are changed and reset together", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/configs": configs, "PUT /topics/orders/configs": configs });
    renderApp("/topics/orders?part=configs");
    const field = await screen.findByLabelText("segment.bytes");
    await expectAccessible();
    await user.clear(field);
    await user.type(field, "200");
    await user.click(screen.getByRole("button", { name: "Reset to default: retention.ms" }));
    expect(screen.getByLabelText("retention.ms")).toHaveValue("604800000");
    expect(screen.getByText("2 unsaved changes")).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText("2 configs of orders changed.")).toBeInTheDocument();
    expect(server.of("PUT /topics/orders/configs")[0]?.body).toEqual({ set: { "segment.bytes": "200" }, delete: ["retention.ms"] });
    expect(screen.queryByText(/unsaved/)).not.toBeInTheDocument();
  });

  it("are searched, and read-only ones have no input", async () => {
    const user = userEvent.setup();
    fakeServer({ "GET /topics/orders": DETAIL, "GET /topics/orders/configs": configs });
    renderApp("/topics/orders?part=configs");
    expect(await screen.findByText("preallocate")).toBeInTheDocument();
    expect(screen.queryByLabelText("preallocate")).not.toBeInTheDocument();
    await user.click(screen.getByLabelText("Show only configs set on this topic"));
    expect(screen.queryByText("preallocate")).not.toBeInTheDocument();
    await user.type(screen.getByLabelText("Search configs"), "no such config");
    expect(screen.getByText("No configs match.")).toBeInTheDocument();
  });

  it("keep the input after an error", async () => {
    const user = userEvent.setup();
    fakeServer({
      "GET /topics/orders": DETAIL,
      "GET /topics/orders/configs": configs,
      "PUT /topics/orders/configs": problem(400, "invalid-config", "segment.bytes is too small: the minimum is 1024."),
    });
    renderApp("/topics/orders?part=configs");
    await user.type(await screen.findByLabelText("segment.bytes"), "7");
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(/too small/)).toBeInTheDocument();
    expect(screen.getByLabelText("segment.bytes")).toHaveValue("1007");
  });
});
