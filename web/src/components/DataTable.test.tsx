import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { expectAccessible, renderPart } from "../test/render";
import { type Column, DataTable } from "./DataTable";
import { DEFAULT_VIEW } from "./tableView";

interface Fruit {
  name: string;
  weight: number | null;
}

const FRUITS: Fruit[] = [
  { name: "pear-10", weight: 3 },
  { name: "pear-9", weight: null },
  { name: "apple", weight: 20 },
];
const COLUMNS: Column<Fruit>[] = [
  { key: "name", header: "Name", cell: ({ name }) => <a href="#x">{name}</a>, sortBy: ({ name }) => name },
  { key: "weight", header: "Weight", cell: ({ weight }) => weight ?? "–", sortBy: ({ weight }) => weight, align: "right" },
];
const name = (fruit: Fruit) => fruit.name;

const shown = () => screen.getAllByRole("link").map((link) => link.textContent);

it("sorts numbers in names naturally, with unknown values last", async () => {
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={FRUITS} rowKey={name} initial={{ sort: "name" }} />);
  expect(shown()).toEqual(["apple", "pear-9", "pear-10"]);

  await userEvent.click(screen.getByRole("button", { name: "Weight" }));
  expect(shown()).toEqual(["apple", "pear-10", "pear-9"]);
  expect(screen.getByRole("columnheader", { name: "Weight" })).toHaveAttribute("aria-sort", "descending");

  await userEvent.click(screen.getByRole("button", { name: "Weight" }));
  expect(shown()).toEqual(["pear-10", "apple", "pear-9"]);
  await expectAccessible();
});

it("searches, and shows a message when nothing matches", async () => {
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={FRUITS} rowKey={name} searchText={name} />);
  const search = screen.getByRole("searchbox", { name: "Search fruits" });
  await userEvent.type(search, "PEAR");
  expect(shown()).toEqual(["pear-10", "pear-9"]);
  await userEvent.type(search, "x");
  expect(screen.getByText("Nothing matches “PEARx”.")).toBeVisible();
});

it("paginates", async () => {
  const rows = Array.from({ length: 60 }, (_, weight) => ({ name: `n${weight}`, weight }));
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={rows} rowKey={name} initial={{ size: 25 }} />);
  expect(screen.getByText("1–25 of 60")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "page 3" }));
  expect(shown()).toHaveLength(10);
  expect(screen.getByText("51–60 of 60")).toBeVisible();
});

it("moves between rows with the arrow keys", async () => {
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={FRUITS} rowKey={name} />);
  screen.getByRole("link", { name: "pear-10" }).focus();
  await userEvent.keyboard("{ArrowDown}");
  expect(screen.getByRole("link", { name: "pear-9" })).toHaveFocus();
  await userEvent.keyboard("{ArrowUp}{ArrowUp}");
  expect(screen.getByRole("link", { name: "pear-10" })).toHaveFocus();
});

it("lets the server sort remote tables", async () => {
  const onView = vi.fn();
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={FRUITS} rowKey={name} remote={{ total: 500, view: { ...DEFAULT_VIEW, sort: "name", page: 2 }, onView }} />);
  expect(shown()).toEqual(["pear-10", "pear-9", "apple"]);
  expect(screen.getByText("51–100 of 500")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Name" }));
  expect(onView).toHaveBeenCalledWith({ ...DEFAULT_VIEW, sort: "name", order: "desc", page: 1 });
});

it("expands a row", async () => {
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={FRUITS.slice(0, 1)} rowKey={name} expand={() => "details of the row"} />);
  const more = screen.getByRole("button", { name: "Show more" });
  expect(more).toHaveAttribute("aria-expanded", "false");
  await userEvent.click(more);
  expect(within(screen.getByRole("table")).getByText("details of the row")).toBeVisible();
});

it("shows the empty state without rows", () => {
  renderPart(<DataTable label="Fruits" columns={COLUMNS} rows={[]} rowKey={name} empty="No fruit." />);
  expect(screen.getByText("No fruit.")).toBeVisible();
  expect(screen.queryByRole("table")).toBeNull();
});
