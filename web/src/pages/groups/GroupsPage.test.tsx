import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { GroupPage } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer } from "../../test/server";

const PAGE: GroupPage = {
  asOfMs: 0,
  total: 1,
  page: 1,
  size: 50,
  items: [
    {
      group: "billing",
      type: "classic",
      state: "Stable",
      protocolType: "consumer",
      memberCount: 2,
      topics: ["a", "b", "c", "d", "e"],
      lag: 1200,
    },
  ],
};

describe("groups", () => {
  it("are listed with their lag", async () => {
    fakeServer({ "GET /groups": PAGE });
    renderApp("/groups");
    const table = await screen.findByRole("table", { name: "Groups" });
    const [, row] = within(table).getAllByRole("row");
    expect(row).toHaveTextContent("billingStableclassica, b, c and 2 more21,200");
    expect(within(table).getByRole("link", { name: "billing" })).toHaveAttribute("href", "/groups/billing");
    await expectAccessible();
  });

  it("are filtered by state and searched by the server", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /groups": PAGE });
    const { router } = renderApp("/groups?page=3");
    await user.selectOptions(await screen.findByLabelText("State"), "Empty");
    await user.type(screen.getByRole("searchbox"), "bil");
    await waitFor(() => expect(server.of("GET /groups").at(-1)?.query).toMatchObject({ state: "Empty", search: "bil", page: "1" }));
    expect(router.state.location.search).toContain("state=Empty");
  });

  it("show an empty state", async () => {
    fakeServer({ "GET /groups": { ...PAGE, total: 0, items: [] } });
    renderApp("/groups");
    expect(await screen.findByText("There are no consumer groups yet.")).toBeInTheDocument();
  });
});
