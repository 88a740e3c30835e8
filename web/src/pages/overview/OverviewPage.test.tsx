import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { overview } from "../../test/cluster";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";

it("shows the cluster at a glance", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  expect(await screen.findByRole("status", { name: "Health" })).toHaveTextContent("Everything is well");
  expect(screen.getByText("3 KiB/s", { selector: "span" })).toHaveAttribute("title", "3,072 bytes per second");
  expect(screen.getByText("2.5 requests/s")).toBeVisible();
  expect(screen.getByText("s3://bucket/main")).toBeVisible();
  expect(screen.getByText("42 ms")).toBeVisible();
  expect(screen.getByText("2 of 3")).toBeVisible();
  expect(screen.getByText("etcd-2 does not answer.")).toBeVisible();
  expect(screen.getAllByText("$1.50")).toHaveLength(2);
  await expectAccessible();
});

it("leads to the brokers, and to who is behind, whatever they are called", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  const lags = await screen.findByRole("table", { name: "Furthest behind" });
  expect(within(lags).getByRole("link", { name: "billing/eu" })).toHaveAttribute("href", "/groups/billing%2Feu");
  expect(within(lags).getByText("1,200")).toBeVisible();
  const brokers = screen.getByRole("table", { name: "Brokers" });
  expect(within(brokers).getByRole("link", { name: "2" })).toHaveAttribute("href", "/brokers/2");
});

it("says why the cluster is not well", async () => {
  const health = {
    state: "down" as const,
    reasons: [
      { severity: "critical" as const, subject: "S3", sentence: "Nothing can be written." },
      { severity: "warning" as const, subject: "broker 2", sentence: "It has gone." },
    ],
  };
  fakeServer({ "GET /overview": overview({ health }) });
  renderApp("/");
  const banner = await screen.findByRole("status", { name: "Health" });
  expect(banner).toHaveTextContent("The cluster does not work");
  expect(within(banner).getAllByRole("listitem").map((item) => item.textContent)).toEqual(["S3: Nothing can be written.", "broker 2: It has gone."]);
});

it("asks where nothing is pushed, and says so", async () => {
  fakeServer({ "GET /overview": overview() });
  renderApp("/");
  expect(await screen.findByText("Reconnecting, asking every 5 s")).toBeVisible();
});

it("shows what is wrong, and tries again when told to", async () => {
  const server = fakeServer({ "GET /overview": problem(503, "unreachable", "No broker answers.") });
  renderApp("/");
  expect(await screen.findByText("No broker answers.")).toBeVisible();
  server.set("GET /overview", overview());
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("status", { name: "Health" })).toBeVisible();
});
