import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, beforeEach, expect, it } from "vitest";

import type { Series } from "../api/contract";
import { drawn } from "../test/canvas";
import { overview } from "../test/cluster";
import { expectAccessible, renderPart } from "../test/render";
import { columnsOf, mergeSeries, STEPS } from "./chartData";
import { timeLabel, timeRange } from "./chartOptions";
import { TimeChart, type Unit } from "./TimeChart";

const NOON = new Date(2026, 4, 1, 12, 0, 0).getTime();
const LIGHT = "* { --chart-line-1: teal; --chart-line-2: orange; }";
const DARK = "* { --chart-line-1: white; --chart-line-2: yellow; }";
const sheet = document.createElement("style");

beforeEach(() => {
  sheet.textContent = LIGHT;
  document.head.append(sheet);
});
afterEach(() => sheet.remove());

function series(name: string, ...values: number[]): Series {
  return { name, points: values.map((value, index) => ({ atMs: NOON + index * 60_000, value })) };
}

async function draw(unit: Unit, ...all: Series[]) {
  const rendered = renderPart(<TimeChart title="Throughput" series={all} unit={unit} names={{ produce: "Produced", fetch: "Fetched" }} />);
  await waitFor(() => expect(drawn.strokes.length).toBeGreaterThan(0));
  return rendered;
}

const stroked = (color: string) => drawn.strokes.filter((stroke) => stroke.color === color).flatMap(({ points }) => points);

it("describes the latest values, and shows all values in a table", async () => {
  renderPart(<TimeChart title="Throughput" series={overview().throughput} unit="bytes/s" names={{ produce: "Produced", fetch: "Fetched" }} />);
  expect(screen.getByRole("img", { name: /Throughput: Produced 3 KiB\/s, Fetched 0 B\/s/ })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show as a table" }));
  const cells = screen.getAllByRole("cell").map((cell) => cell.textContent);
  expect(cells).toEqual([expect.any(String), "3 KiB/s", "0 B/s", expect.any(String), "1 KiB/s", "–"]);
  await expectAccessible();
});

it("shows the empty text without data", () => {
  renderPart(<TimeChart title="Lag" series={[]} unit="count" empty="No data yet." />);
  expect(screen.getByText("No data yet.")).toBeVisible();
  expect(screen.queryByRole("button")).toBeNull();
});

it("draws each series in its own colour, with a legend", async () => {
  await draw("bytes/s", series("produce", 0, 4096, 2048), series("fetch", 4096, 0, 0));
  const [first, second, third] = stroked("teal");
  expect(stroked("teal")).toHaveLength(3);
  expect(first?.[0]).toBeLessThan(second?.[0] ?? 0);
  // The height is proportional to the value.
  expect((first?.[1] ?? 0) - (third?.[1] ?? 0)).toBeCloseTo(((first?.[1] ?? 0) - (second?.[1] ?? 0)) / 2, -1);
  expect(stroked("orange")).toHaveLength(3);
  expect(screen.getAllByRole("listitem", { hidden: true }).map((item) => item.textContent)).toEqual(["Produced", "Fetched"]);
  await expectAccessible();
});

it("draws a single value as a dot, and no other values", async () => {
  await draw("bytes/s", series("produce", 0, 4096, 2048), series("fetch", 4096));
  expect(drawn.dots).toEqual([[expect.any(Number), stroked("teal")[1]?.[1]]]);
});

it("labels the axes with round values in the unit, from 0, and with round times", async () => {
  await draw("bytes/s", series("produce", 70_000, 90_000, 5));
  expect(drawn.texts).toEqual(expect.arrayContaining(["0 B/s", "32 KiB/s", "64 KiB/s", "12:00:30", "12:01:00"]));
});

it("labels counts with whole numbers only", async () => {
  await draw("count", series("lag", 1, 2, 1));
  expect(drawn.texts.filter((text) => !text.includes(":"))).toEqual(["0", "1", "2"]);
});

it("shows the values at the hovered time until the pointer leaves", async () => {
  const { container } = await draw("bytes/s", series("produce", 1024, 2048, 3072), series("fetch", 5));
  const over = container.querySelector(".u-over") as Element;
  const shown = () => [...container.querySelectorAll("strong")].map((figure) => figure.textContent);
  expect(shown()).toEqual([]);
  fireEvent.mouseEnter(over);
  fireEvent.mouseMove(over, { clientX: 700, clientY: 20 });
  await waitFor(() => expect(shown()).toEqual(["3 KiB/s", "–"]));
  fireEvent.mouseLeave(over);
  await waitFor(() => expect(shown()).toEqual([]));
});

it("redraws when values are added", async () => {
  function Growing() {
    const [values, setValues] = useState([1, 2]);
    return (
      <>
        <button onClick={() => setValues([...values, 3])}>More</button>
        <TimeChart title="Lag" series={[series("lag", ...values)]} unit="count" />
      </>
    );
  }
  renderPart(<Growing />);
  await waitFor(() => expect(stroked("teal")).toHaveLength(2));
  await userEvent.click(screen.getByRole("button", { name: "More" }));
  await waitFor(() => expect(stroked("teal")).toHaveLength(3));
});

it("draws in the colours of the active colour scheme", async () => {
  await draw("count", series("lag", 1, 2));
  expect(stroked("teal")).toHaveLength(2);
  sheet.textContent = DARK;
  document.documentElement.setAttribute("data-mantine-color-scheme", "dark");
  await waitFor(() => expect(stroked("white")).toHaveLength(2));
  expect(stroked("teal")).toEqual([]);
});

it("merges series by time", () => {
  const rows = mergeSeries([
    { name: "atMs", points: [{ atMs: 2, value: 70 }, { atMs: 1, value: 5 }] },
    { name: "b", points: [{ atMs: 2, value: 9 }] },
  ]);
  expect(rows).toEqual([{ atMs: 1, values: [5, undefined] }, { atMs: 2, values: [70, 9] }]);
  expect(columnsOf(rows, 2)).toEqual([[1, 2], [5, 70], [undefined, 9]]);
});

it("has axis steps from tiny to huge", () => {
  expect(STEPS.binary).toEqual(expect.arrayContaining([1, 1024, 2 ** 50]));
  expect(Math.min(...STEPS.whole)).toBe(1);
  expect(STEPS.decimal).toEqual(expect.arrayContaining([0.0001, 0.02, 0.5, 2_000_000]));
});

it("spans at least a minute, and shows seconds only for short steps", () => {
  expect(timeRange({ data: [[NOON]] })).toEqual([NOON - 60_000, NOON]);
  expect(timeRange({ data: [[NOON - 120_000, NOON]] })).toEqual([NOON - 120_000, NOON]);
  expect([timeLabel(NOON, 15_000), timeLabel(NOON, 300_000)]).toEqual(["12:00:00", "12:00"]);
});
