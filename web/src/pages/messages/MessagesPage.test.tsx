import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { Browse, Browsed, Message } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";
import { DETAIL } from "../topic/fixtures";

const BROWSE = "POST /topics/orders/messages/browse";

function message(offset: number, changes: Partial<Message> = {}): Message {
  const text = (content: string) => ({ format: "text" as const, text: content, sizeBytes: content.length, isTruncated: false, schemaId: null, problem: null });
  return {
    partition: 1,
    offset,
    timestampMs: 1_700_000_000_000 + offset,
    timestampType: "create",
    key: text(`order-${offset}`),
    value: { ...text(`{\n  "id": ${offset}\n}`), format: "json" },
    headers: [{ key: "trace", value: text("abc") }],
    sizeBytes: 80,
    ...changes,
  };
}

function browsed(messages: Message[], changes: Partial<Browsed> = {}): Browsed {
  return { messages, scannedRecords: messages.length, scannedBytes: 1000, isComplete: true, next: {}, problems: [], ...changes };
}

describe("records", () => {
  it("are shown newest first, and expand to the full record", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7), message(6, { value: null })]) });
    renderApp("/topics/orders/messages");
    expect(await screen.findByText('{"id":7}')).toBeInTheDocument();
    expect(screen.getByText("tombstone")).toBeInTheDocument();
    expect(server.of(BROWSE)[0]?.body).toMatchObject({ start: { kind: "newest" }, partitions: [], limit: 50, cursor: {} });
    await user.click(screen.getByRole("button", { name: "Record 7 of partition 1" }));
    const value = screen.getByRole("region", { name: "Value" });
    expect(value).toHaveTextContent('{ "id": 7 }');
    expect(within(screen.getByRole("table", { name: "Headers" })).getByText("abc")).toBeInTheDocument();
    await expectAccessible();
  });

  it("are queried as the URL says", async () => {
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([]) });
    renderApp("/topics/orders/messages?from=offset&offset=41&partitions=1&path=customer.city&equals=Bern&valueFormat=json");
    expect(await screen.findByText("No records match.")).toBeInTheDocument();
    expect(server.of(BROWSE)[0]?.body).toMatchObject({
      start: { kind: "offset", offset: 41 },
      partitions: [1],
      filter: { jsonPath: "customer.city", jsonEquals: "Bern" },
      value: { format: "json" },
    });
  });

  it("are of all transactions, or only of committed ones", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    renderApp("/topics/orders/messages");
    expect(await screen.findByText("1 record, read_uncommitted")).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Filters and formats" }));
    await user.selectOptions(screen.getByLabelText("Isolation level"), "read_committed");
    await user.click(screen.getByRole("button", { name: "Find" }));
    expect(await screen.findByText("1 record, read_committed")).toBeInTheDocument();
    expect(server.of(BROWSE).map((each) => (each.body as Browse).isolation)).toEqual(["read_uncommitted", "read_committed"]);
  });

  it("keep the search in the URL", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    const { router } = renderApp("/topics/orders/messages");
    await user.type(await screen.findByLabelText("Contains"), "Bern{Enter}");
    await waitFor(() => expect(router.state.location.search).toBe("?text=Bern"));
    expect(await screen.findByText(/1 record found in 1 scanned record/)).toBeInTheDocument();
    expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ filter: { text: "Bern" } });
  });

  it("continue after the last page", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)], { isComplete: false, next: { "1": 7 } }) });
    renderApp("/topics/orders/messages");
    const more = await screen.findByRole("button", { name: "Load more" });
    server.set(BROWSE, browsed([message(6)]));
    await user.click(more);
    expect(await screen.findByText('{"id":6}')).toBeInTheDocument();
    expect(screen.getByText('{"id":7}')).toBeInTheDocument();
    expect(server.of(BROWSE)[1]?.body).toMatchObject({ cursor: { "1": 7 } });
    expect(screen.queryByRole("button", { name: "Load more" })).not.toBeInTheDocument();
  });

  it("of a link are expanded", async () => {
    fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(41), message(42)]) });
    renderApp("/topics/orders/messages?from=offset&offset=41&partitions=1");
    expect(await screen.findByRole("button", { name: "Record 41 of partition 1" })).toHaveAttribute("aria-expanded", "true");
    expect(screen.getByRole("button", { name: "Record 42 of partition 1" })).toHaveAttribute("aria-expanded", "false");
  });

  it("are linked to by partition and offset", async () => {
    const user = userEvent.setup();
    fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    renderApp("/topics/orders/messages?text=x");
    await user.click(await screen.findByRole("button", { name: "Record 7 of partition 1" }));
    await user.click(screen.getByRole("button", { name: "Copy link" }));
    expect(await screen.findByText("Copied")).toBeInTheDocument();
    expect(await navigator.clipboard.readText()).toMatch(/\?from=offset&offset=7&partitions=1$/);
  });

  it("that were truncated can be loaded in full", async () => {
    const user = userEvent.setup();
    const full = message(7);
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([{ ...full, value: { ...full.value!, text: "begin", isTruncated: true } }]) });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Record 7 of partition 1" }));
    server.set(BROWSE, browsed([{ ...full, value: { ...full.value!, text: "begin and end" } }]));
    await user.click(screen.getByRole("button", { name: "Load full record" }));
    expect(await screen.findByText("begin and end")).toBeInTheDocument();
    expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ limit: 1, start: { kind: "offset", offset: 7 }, partitions: [1] });
  });

  it("show the error if they cannot be read", async () => {
    fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: problem(503, "unavailable", "Partition 1 has no leader; try again in a moment.") });
    renderApp("/topics/orders/messages");
    expect(await screen.findByText(/has no leader/)).toBeInTheDocument();
  });

  it("keep a pasted schema in the browser, not in the URL", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    const { router } = renderApp("/topics/orders/messages?valueFormat=protobuf");
    await user.type(await screen.findByLabelText(".proto file of the value"), "message Order");
    await user.type(screen.getByLabelText("Message type of the value"), "Order");
    await user.click(screen.getByRole("button", { name: "Find" }));
    await waitFor(() =>
      expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ value: { schema: { kind: "protobuf", text: "message Order", message: "Order" } } }),
    );
    expect(router.state.location.search).toBe("?valueFormat=protobuf");
  });
});

describe("a new record", () => {
  const PRODUCE = "POST /topics/orders/messages";

  it("is produced, and the records are refreshed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({
      "GET /topics/orders": DETAIL,
      [BROWSE]: browsed([]),
      [PRODUCE]: { partition: 1, offset: 8, timestampMs: 0 },
    });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Produce record" }));
    const dialog = await screen.findByRole("dialog");
    await user.type(within(dialog).getByLabelText("Key"), "k");
    await user.type(within(dialog).getByLabelText("Value"), "hello");
    await user.selectOptions(within(dialog).getByLabelText("Partition"), "1");
    await user.click(within(dialog).getByRole("button", { name: "Add header" }));
    await user.type(within(dialog).getByLabelText("Name of header 1"), "trace");
    await user.type(within(dialog).getByLabelText("Value of header 1"), "abc");
    await expectAccessible();
    await user.click(within(dialog).getByRole("button", { name: "Produce" }));
    expect(await screen.findByText("Record produced at offset 8 of partition 1.")).toBeInTheDocument();
    expect(server.of(PRODUCE)[0]?.body).toEqual({
      partition: 1,
      key: { text: "k", format: "text", schema: null },
      value: { text: "hello", format: "text", schema: null },
      headers: [{ key: "trace", value: "abc" }],
    });
    await waitFor(() => expect(server.of(BROWSE)).toHaveLength(2));
  });

  it("with invalid JSON is not sent", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([]) });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Produce record" }));
    const dialog = await screen.findByRole("dialog");
    await user.selectOptions(within(dialog).getByLabelText("Value format"), "json");
    await user.type(within(dialog).getByLabelText("Value"), "nope");
    await user.click(within(dialog).getByRole("button", { name: "Produce" }));
    expect(await within(dialog).findByText(/Invalid JSON/)).toBeInTheDocument();
    expect(server.of(PRODUCE)).toHaveLength(0);
  });
});
