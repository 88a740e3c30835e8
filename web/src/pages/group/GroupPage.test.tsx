import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { GroupDetail, ResetPlan } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, noContent, problem } from "../../test/server";

const DETAIL: GroupDetail = {
  group: "eu/billing",
  type: "classic",
  state: "Stable",
  protocolType: "consumer",
  assignor: "range",
  epoch: null,
  lag: 30,
  members: [{ memberId: "m-1", instanceId: null, clientId: "app", host: "/10.0.0.1", topics: ["orders"], assignment: { orders: [0, 1, 2] } }],
  offsets: [
    { topic: "orders", partition: 0, committedOffset: 100, endOffset: 130, lag: 30, metadata: null, memberId: "m-1", clientId: "app", host: "/10.0.0.1" },
    { topic: "orders", partition: 1, committedOffset: null, endOffset: 5, lag: null, metadata: null, memberId: null, clientId: null, host: null },
  ],
  lagHistory: [],
};
const PATH = "GET /groups/eu/billing";
const RESET = "POST /groups/eu/billing/reset";
const PLAN: ResetPlan = {
  executed: false,
  rows: [{ topic: "orders", partition: 0, before: 100, after: 90, startOffset: 0, endOffset: 130, note: "10 to read again" }],
};

async function openReset(user: ReturnType<typeof userEvent.setup>) {
  await user.click(await screen.findByRole("button", { name: "Reset offsets" }));
  return within(await screen.findByRole("dialog"));
}

describe("a group", () => {
  it("shows members, assignments and lag", async () => {
    fakeServer({ [PATH]: DETAIL });
    renderApp("/groups/eu%2Fbilling");
    const offsets = await screen.findByRole("table", { name: "Offsets" });
    expect(within(offsets).getAllByRole("row")[1]).toHaveTextContent("ordersapp at 10.0.0.1010013030");
    expect(within(offsets).getByRole("link", { name: "100" })).toHaveAttribute(
      "href",
      "/topics/orders/messages?from=offset&offset=100&partitions=0",
    );
    expect(within(offsets).getByText("unassigned")).toBeInTheDocument();
    expect(within(screen.getByRole("table", { name: "Members" })).getByText("orders: 0–2")).toBeInTheDocument();
    await expectAccessible();
  });

  it("is deleted after its name is typed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ [PATH]: DETAIL, "DELETE /groups/eu/billing": noContent });
    const { router } = renderApp("/groups/eu%2Fbilling");
    await user.click(await screen.findByRole("button", { name: "Delete" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.type(dialog.getByRole("textbox"), "eu/billing");
    await user.click(dialog.getByRole("button", { name: "Delete group" }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/groups"));
    expect(server.of("DELETE /groups/eu/billing")[0]?.body).toEqual({ confirm: "eu/billing" });
  });
});

describe("an offset reset", () => {
  it("is previewed before it is executed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ [PATH]: { ...DETAIL, members: [] }, [RESET]: PLAN });
    renderApp("/groups/eu%2Fbilling");
    const dialog = await openReset(user);
    await user.selectOptions(dialog.getByLabelText("Reset to"), "shift");
    await user.clear(dialog.getByLabelText("Records"));
    await user.type(dialog.getByLabelText("Records"), "-10");
    expect(dialog.queryByRole("button", { name: /^Reset/ })).not.toBeInTheDocument();
    await user.click(dialog.getByRole("button", { name: "Preview" }));
    const rows = within(await dialog.findByRole("table", { name: "Plan" })).getAllByRole("row");
    expect(rows[1]).toHaveTextContent("orders01009040" + "10 to read again");
    await expectAccessible();
    server.set(RESET, { ...PLAN, executed: true });
    await user.click(dialog.getByRole("button", { name: "Reset 1 partition" }));
    expect(await screen.findByText("Offsets of eu/billing reset in 1 partition.")).toBeInTheDocument();
    const to = { kind: "shift", number: -10 };
    expect(server.of(RESET).map(({ body }) => body)).toEqual([
      { to, topics: null, execute: false },
      { to, topics: null, execute: true },
    ]);
  });

  it("needs a new preview after a change of the form", async () => {
    const user = userEvent.setup();
    fakeServer({ [PATH]: { ...DETAIL, members: [] }, [RESET]: PLAN });
    renderApp("/groups/eu%2Fbilling");
    const dialog = await openReset(user);
    await user.click(dialog.getByRole("button", { name: "Preview" }));
    expect(await dialog.findByRole("button", { name: "Reset 1 partition" })).toBeInTheDocument();
    await user.selectOptions(dialog.getByLabelText("Reset to"), "latest");
    expect(dialog.queryByRole("button", { name: /^Reset/ })).not.toBeInTheDocument();
  });

  it("warns about active members, and shows the error", async () => {
    const user = userEvent.setup();
    fakeServer({ [PATH]: DETAIL, [RESET]: problem(409, "non-empty-group", "The group has members; stop them first.") });
    renderApp("/groups/eu%2Fbilling");
    const dialog = await openReset(user);
    expect(dialog.getByText(/Stop its consumers first/)).toBeInTheDocument();
    await user.click(dialog.getByRole("button", { name: "Preview" }));
    expect(await dialog.findByText("The group has members; stop them first.")).toBeInTheDocument();
  });
});
