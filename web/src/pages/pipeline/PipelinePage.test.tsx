import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { Pipeline, Run } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer } from "../../test/server";
import { recordsOf, runDuration, topicsOf } from "./runs";

const RUN: Run = {
  job: "lake",
  topics: ["orders"],
  startedAtMs: 1_700_000_000_000,
  endedAtMs: 1_700_000_090_000,
  outcome: "failed",
  error: "The table is locked.",
  recordsIn: 1000,
  recordsOut: 998,
  sizeBytes: 4096,
  newestTimestampMs: null,
  details: { snapshot: "42" },
};
const PIPELINE: Pipeline = {
  jobs: [{ job: "lake", last: RUN, successRate: 0.5, freshnessMs: 60_000, runs: [RUN] }],
  cost: {
    createdAtMs: Date.now() - 3_600_000,
    totalPerDay: 2,
    currency: "USD",
    topics: [{ topic: "orders", storedBytes: 1024, recordCount: 10, costPerDay: 2 }],
  },
  problem: null,
};

describe("the pipeline", () => {
  it("shows jobs, freshness and cost", async () => {
    const user = userEvent.setup();
    fakeServer({ "GET /pipeline": PIPELINE });
    renderApp("/pipeline");
    const jobs = await screen.findByRole("table", { name: "Jobs" });
    expect(within(jobs).getAllByRole("row")[1]).toHaveTextContent("lakefailed");
    expect(within(jobs).getByText("1 min old")).toBeInTheDocument();
    expect(within(jobs).getByText("50%")).toBeInTheDocument();
    expect(screen.getByText(/\$2\.00 per day in total, about \$60\.00 per month/)).toBeInTheDocument();
    expect(screen.getByRole("img", { name: "Most expensive topics: orders $2.00 per day." })).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Show more" }));
    expect(screen.getByText("The table is locked.")).toBeInTheDocument();
    expect(screen.getByText("42")).toBeInTheDocument();
    await expectAccessible();
  });

  it("shows an empty state without runs", async () => {
    fakeServer({ "GET /pipeline": { jobs: [], cost: null, problem: null } });
    renderApp("/pipeline");
    expect(await screen.findByText("No job has run yet.")).toBeInTheDocument();
  });

  it("shows the error if runs cannot be read", async () => {
    fakeServer({ "GET /pipeline": { jobs: [], cost: null, problem: "The bucket is unreachable." } });
    renderApp("/pipeline");
    expect(await screen.findByText("The bucket is unreachable.")).toBeInTheDocument();
    expect(screen.queryByText("No job has run yet.")).not.toBeInTheDocument();
  });
});

describe("a run", () => {
  it("is described by duration, topics and records", () => {
    expect(runDuration(RUN, 0)).toBe("1 min 30 s");
    expect(runDuration({ ...RUN, endedAtMs: null }, RUN.startedAtMs + 5_000)).toBe("5 s");
    expect(topicsOf({ ...RUN, topics: [] })).toBe("all topics");
    expect(topicsOf({ ...RUN, topics: ["a", "b", "c", "d"] })).toBe("a, b, c and 1 more");
    expect(recordsOf(RUN)).toBe("1,000 in, 998 out");
    expect(recordsOf({ ...RUN, recordsIn: null, recordsOut: null })).toBe("–");
  });
});
