import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { overview } from "../../test/cluster";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";

it("shows health, throughput, storage and cost", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  expect(await screen.findByRole("status", { name: "Health" })).toHaveTextContent("Cluster is healthy");
  expect(screen.getByText("3 KiB/s", { selector: "span" })).toHaveAttribute("title", "3,072 bytes per second");
  expect(screen.getByText("2.5 requests/s")).toBeVisible();
  expect(screen.getByText("s3://bucket/main")).toBeVisible();
  expect(screen.getByText("42 ms")).toBeVisible();
  expect(screen.getByText("2 of 3")).toBeVisible();
  expect(screen.getByText("etcd-2 is unreachable.")).toBeVisible();
  expect(screen.getAllByText("$1.50")).toHaveLength(2);
  await expectAccessible();
});

it("links to brokers and lagging groups, with encoded names", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  const lags = await screen.findByRole("table", { name: "Highest consumer lag" });
  expect(within(lags).getByRole("link", { name: "billing/eu" })).toHaveAttribute("href", "/groups/billing%2Feu");
  expect(within(lags).getByText("1,200")).toBeVisible();
  const brokers = screen.getByRole("table", { name: "Brokers" });
  expect(within(brokers).getByRole("link", { name: "2" })).toHaveAttribute("href", "/brokers/2");
});

it("shows the reasons for bad health", async () => {
  const health = {
    state: "down" as const,
    reasons: [
      { severity: "critical" as const, subject: "S3", sentence: "Writes fail." },
      { severity: "warning" as const, subject: "broker 2", sentence: "Its lease has expired." },
    ],
  };
  fakeServer({ "GET /overview": overview({ health }) });
  renderApp("/");
  const banner = await screen.findByRole("status", { name: "Health" });
  expect(banner).toHaveTextContent("Cluster is down");
  expect(within(banner).getAllByRole("listitem").map((item) => item.textContent)).toEqual(["S3: Writes fail.", "broker 2: Its lease has expired."]);
});

it("polls and says so when there is no event stream", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  expect(await screen.findByText("Reconnecting, polling every 5 s")).toBeVisible();
});

it("shows the error, and retries on request", async () => {
  const server = fakeServer({ "GET /overview": problem(503, "unreachable", "No broker is reachable.") });
  renderApp("/");
  expect(await screen.findByText("No broker is reachable.")).toBeVisible();
  server.set("GET /overview", overview());
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("status", { name: "Health" })).toBeVisible();
});
