import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { Browsed, Message } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";
import { DETAIL } from "../topic/fixtures";

const BROWSE = "POST /topics/orders/messages/browse";

function message(offset: number, changes: Partial<Message> = {}): Message {
  const text = (written: string) => ({ format: "text" as const, text: written, sizeBytes: written.length, isTruncated: false, schemaId: null, problem: null });
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
  it("are shown newest first, and open to the whole record", async () => {
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

  it("are looked for as the address says", async () => {
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([]) });
    renderApp("/topics/orders/messages?from=offset&offset=41&partitions=1&path=customer.city&equals=Bern&valueFormat=json");
    expect(await screen.findByText("No record fits.")).toBeInTheDocument();
    expect(server.of(BROWSE)[0]?.body).toMatchObject({
      start: { kind: "offset", offset: 41 },
      partitions: [1],
      filter: { jsonPath: "customer.city", jsonEquals: "Bern" },
      value: { format: "json" },
    });
  });

  it("that are searched put the search into the address", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    const { router } = renderApp("/topics/orders/messages");
    await user.type(await screen.findByLabelText("Contains"), "Bern{Enter}");
    await waitFor(() => expect(router.state.location.search).toBe("?text=Bern"));
    expect(await screen.findByText(/1 record found in 1 record/)).toBeInTheDocument();
    expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ filter: { text: "Bern" } });
  });

  it("go on where the answer before ended", async () => {
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

  it("of a link are open at once", async () => {
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

  it("that were cut are loaded whole", async () => {
    const user = userEvent.setup();
    const cut = message(7);
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([{ ...cut, value: { ...cut.value!, text: "begin", isTruncated: true } }]) });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Record 7 of partition 1" }));
    server.set(BROWSE, browsed([{ ...cut, value: { ...cut.value!, text: "begin and end" } }]));
    await user.click(screen.getByRole("button", { name: "Load all of it" }));
    expect(await screen.findByText("begin and end")).toBeInTheDocument();
    expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ limit: 1, start: { kind: "offset", offset: 7 }, partitions: [1] });
  });

  it("that could not be read say why", async () => {
    fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: problem(503, "unavailable", "Partition 1 has no leader; try again in a moment.") });
    renderApp("/topics/orders/messages");
    expect(await screen.findByText(/has no leader/)).toBeInTheDocument();
  });

  it("remember a pasted schema in this browser, not in the address", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([message(7)]) });
    const { router } = renderApp("/topics/orders/messages?valueFormat=protobuf");
    await user.type(await screen.findByLabelText(".proto file of the value"), "message Order");
    await user.type(screen.getByLabelText("Message of the value"), "Order");
    await user.click(screen.getByRole("button", { name: "Find" }));
    await waitFor(() =>
      expect(server.of(BROWSE).at(-1)?.body).toMatchObject({ value: { schema: { kind: "protobuf", text: "message Order", message: "Order" } } }),
    );
    expect(router.state.location.search).toBe("?valueFormat=protobuf");
  });
});

describe("a new record", () => {
  const WRITE = "POST /topics/orders/messages";

  it("is written, and the records are read again", async () => {
    const user = userEvent.setup();
    const server = fakeServer({
      "GET /topics/orders": DETAIL,
      [BROWSE]: browsed([]),
      [WRITE]: { partition: 1, offset: 8, timestampMs: 0 },
    });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Write a record" }));
    const dialog = await screen.findByRole("dialog");
    await user.type(within(dialog).getByLabelText("Key"), "k");
    await user.type(within(dialog).getByLabelText("Value"), "hello");
    await user.selectOptions(within(dialog).getByLabelText("Partition"), "1");
    await user.click(within(dialog).getByRole("button", { name: "Add a header" }));
    await user.type(within(dialog).getByLabelText("Name of header 1"), "trace");
    await user.type(within(dialog).getByLabelText("Value of header 1"), "abc");
    await expectAccessible();
    await user.click(within(dialog).getByRole("button", { name: "Write record" }));
    expect(await screen.findByText("The record is at offset 8 of partition 1.")).toBeInTheDocument();
    expect(server.of(WRITE)[0]?.body).toEqual({
      partition: 1,
      key: { text: "k", format: "text", schema: null },
      value: { text: "hello", format: "text", schema: null },
      headers: [{ key: "trace", value: "abc" }],
    });
    await waitFor(() => expect(server.of(BROWSE)).toHaveLength(2));
  });

  it("that is not JSON is not sent as such", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /topics/orders": DETAIL, [BROWSE]: browsed([]) });
    renderApp("/topics/orders/messages");
    await user.click(await screen.findByRole("button", { name: "Write a record" }));
    const dialog = await screen.findByRole("dialog");
    await user.selectOptions(within(dialog).getByLabelText("Value is written as"), "json");
    await user.type(within(dialog).getByLabelText("Value"), "nope");
    await user.click(within(dialog).getByRole("button", { name: "Write record" }));
    expect(await within(dialog).findByText(/This is not JSON/)).toBeInTheDocument();
    expect(server.of(WRITE)).toHaveLength(0);
  });
});
