import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { ApiError } from "../api/client";
import { overview } from "../test/cluster";
import { expectAccessible, renderPart } from "../test/render";
import { mergeSeries, niceTicks, niceTimes } from "./chartData";
import { ConfirmDialog } from "./ConfirmDialog";
import { StateBadge, toneOf } from "./StateBadge";
import { TimeChart } from "./TimeChart";

it("lets nobody delete before the name was typed", async () => {
  const onConfirm = vi.fn(async () => {});
  const onClose = vi.fn();
  renderPart(
    <ConfirmDialog opened onClose={onClose} title="Delete a topic" action="Delete" typed="orders" danger onConfirm={onConfirm}>
      Gone for good.
    </ConfirmDialog>,
  );
  const button = await screen.findByRole("button", { name: "Delete" });
  expect(button).toBeDisabled();
  const field = screen.getByRole("textbox", { name: /Type orders to go on/ });
  await userEvent.type(field, "order{Enter}");
  expect(onConfirm).not.toHaveBeenCalled();
  await userEvent.type(field, "s{Enter}");
  expect(onConfirm).toHaveBeenCalledWith("orders");
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
});

it("stays open, with the reason, when it did not work", async () => {
  const onClose = vi.fn();
  const refuse = async () => {
    throw new ApiError(403, "refused", "You may not do this. Ask somebody who may.");
  };
  renderPart(
    <ConfirmDialog opened onClose={onClose} title="Go?" action="Go" onConfirm={refuse}>
      Really?
    </ConfirmDialog>,
  );
  await userEvent.click(await screen.findByRole("button", { name: "Go" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("You may not do this. Ask somebody who may.");
  expect(onClose).not.toHaveBeenCalled();
});

it("says a state by a word and a tone", () => {
  renderPart(<StateBadge state="not ready" />);
  expect(screen.getByText("not ready")).toBeVisible();
  expect(["Stable", "unreachable", "draining", "never heard of"].map(toneOf)).toEqual(["good", "bad", "warning", "neutral"]);
});

it("has the figures of a chart in words and in a table", async () => {
  renderPart(<TimeChart title="Throughput" series={overview().throughput} unit="bytes/s" names={{ produce: "Written", fetch: "Read" }} />);
  expect(screen.getByRole("img", { name: /Throughput: Written 3 KiB\/s, Read 0 B\/s/ })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show as a table" }));
  const cells = screen.getAllByRole("cell").map((cell) => cell.textContent);
  expect(cells).toEqual([expect.any(String), "3 KiB/s", "0 B/s", expect.any(String), "1 KiB/s", "–"]);
  await expectAccessible();
});

it("says that there is nothing to draw", () => {
  renderPart(<TimeChart title="Lag" series={[]} unit="count" empty="Nothing yet." />);
  expect(screen.getByText("Nothing yet.")).toBeVisible();
  expect(screen.queryByRole("button")).toBeNull();
});

it("draws in steps that people count in", () => {
  const rows = mergeSeries([{ name: "a", points: [{ atMs: 2, value: 70_000 }, { atMs: 1, value: 5 }] }]);
  const lines = [{ name: "a", label: "a", color: "" }];
  expect(rows.map(({ atMs }) => atMs)).toEqual([1, 2]);
  expect(niceTicks(rows, lines, "binary")).toEqual([0, 32_768, 65_536, 98_304]);
  expect(niceTicks(rows, lines, "decimal")).toEqual([0, 20_000, 40_000, 60_000, 80_000]);
  expect(niceTicks([], lines, "binary")).toEqual([0, 1]);
  expect(niceTicks([{ atMs: 1, a: 2 }], lines, "whole")).toEqual([0, 1, 2]);
  expect(niceTicks([{ atMs: 1, a: 2 }], lines, "decimal")).toEqual([0, 0.5, 1, 1.5, 2]);
});

it("marks round moments", () => {
  const noon = new Date(2026, 4, 1, 12, 0, 0).getTime();
  expect(niceTimes(noon - 1_000, noon + 61_000, 4).map(({ label }) => label)).toEqual(["12:00:00", "12:00:30", "12:01:00"]);
  expect(niceTimes(noon + 1, noon + 4 * 3_600_000, 4).map(({ label }) => label)).toEqual(["13:00", "14:00", "15:00", "16:00"]);
  expect(niceTimes(noon, noon, 4)).toHaveLength(1);
});

it("draws each series from value to value, and shows the figures that are pointed at", async () => {
  const { container } = renderPart(<TimeChart title="Throughput" series={overview().throughput} unit="bytes/s" names={{ produce: "Written", fetch: "Read" }} />);
  const [written, read] = [...container.querySelectorAll("path[stroke]")].map((path) => path.getAttribute("d") ?? "");
  expect(written?.split("L")).toHaveLength(2);
  expect(new Set(read?.slice(1).split("L")).size).toBe(1);
  await userEvent.pointer({ target: container.querySelector("svg[viewBox='0 0 600 220']") as Element, coords: { clientX: 590 } });
  expect(screen.getByText("3 KiB/s", { selector: "strong" })).toBeVisible();
});
