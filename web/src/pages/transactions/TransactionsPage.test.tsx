import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { HangingTransaction, Transaction, TransactionPage } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, noContent, problem } from "../../test/server";

const OPEN: Transaction = {
  transactionalId: "billing/eu",
  state: "Ongoing",
  coordinator: 2,
  producerId: 4000,
  producerEpoch: 7,
  timeoutMs: 60_000,
  startedMs: Date.now() - 30_500,
  topics: [{ topic: "orders", partitions: [0, 2] }],
};
const ENDED: Transaction = { ...OPEN, transactionalId: "audit", state: "CompleteCommit", startedMs: null, topics: [] };
const PAGE: TransactionPage = { total: 2, page: 1, size: 50, items: [ENDED, OPEN] };
const HANGING: HangingTransaction = {
  topic: "orders",
  partition: 3,
  startOffset: 1042,
  producerId: 4001,
  producerEpoch: 0,
  transactionalId: null,
  lastWrittenMs: Date.now() - 3_600_000,
};

describe("transactions", () => {
  it("are listed, and open ones can be aborted", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /transactions": PAGE, "GET /hanging-transactions": [], "POST /transactions/billing/eu/abort": noContent });
    renderApp("/transactions");
    const table = await screen.findByRole("table", { name: "Transactions" });
    const [, ended, open] = within(table).getAllByRole("row");
    expect(ended).toHaveTextContent("auditCompleteCommit–1 min40002–");
    expect(open).toHaveTextContent(/billing\/euOngoing3\d s1 min40002orders 0, 2Abort/);
    expect(screen.queryByRole("table", { name: "Hanging transactions" })).toBeNull();
    await expectAccessible();

    await user.click(within(table).getByRole("button", { name: "Abort billing/eu" }));
    const dialog = await screen.findByRole("dialog");
    const confirm = within(dialog).getByRole("button", { name: "Abort transaction" });
    expect(confirm).toBeDisabled();
    await user.type(within(dialog).getByRole("textbox"), "billing/eu");
    await user.click(confirm);
    await waitFor(() => expect(server.of("POST /transactions/billing/eu/abort")[0]?.body).toEqual({ confirm: "billing/eu" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });

  it("are marked if they are open for longer than they should", async () => {
    const overdue = { ...OPEN, startedMs: Date.now() - 300_000 };
    fakeServer({ "GET /transactions": { ...PAGE, total: 1, items: [overdue] }, "GET /hanging-transactions": [] });
    renderApp("/transactions");
    expect(await screen.findByText("Ongoing, overdue")).toBeVisible();
  });

  it("are filtered by state and searched by the server", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /transactions": PAGE, "GET /hanging-transactions": [] });
    renderApp("/transactions?page=2");
    await user.selectOptions(await screen.findByLabelText("State"), "Ongoing");
    await user.type(screen.getByRole("searchbox"), "bil");
    await waitFor(() => expect(server.of("GET /transactions").at(-1)?.query).toMatchObject({ state: "Ongoing", search: "bil", page: "1" }));
  });

  it("that hang are shown first, and are aborted in their partition", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /transactions": PAGE, "GET /hanging-transactions": [HANGING], "POST /hanging-transactions/abort": noContent });
    renderApp("/transactions");
    const table = await screen.findByRole("table", { name: "Hanging transactions" });
    const [, row] = within(table).getAllByRole("row");
    expect(row).toHaveTextContent("orders3hanging1,0424001unknown1 h agoAbort");
    await expectAccessible();
    await user.click(within(table).getByRole("button", { name: /^Abort/ }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Abort transaction" }));
    await waitFor(() => expect(server.of("POST /hanging-transactions/abort")[0]?.body).toEqual({ topic: "orders", partition: 3, startOffset: 1042 }));
  });

  it("show an empty state, and an error of the search for hanging ones", async () => {
    fakeServer({ "GET /transactions": { ...PAGE, total: 0, items: [] }, "GET /hanging-transactions": problem(403, "forbidden", "Describing producers is not authorized.") });
    renderApp("/transactions");
    expect(await screen.findByText("There are no transactional ids yet.")).toBeInTheDocument();
    expect(await screen.findByText("Describing producers is not authorized.")).toBeVisible();
  });
});
