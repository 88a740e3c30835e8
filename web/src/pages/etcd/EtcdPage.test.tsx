import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { EtcdState } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, problem } from "../../test/server";

const SNAPSHOT = {
  key: "snapshots/ns/1.db",
  takenAt: "2026-01-01T00:00:00Z",
  ageSeconds: 2 * 86_400,
  sizeBytes: 4096,
  revision: 12,
  etcdVersion: "3.5.1",
  verified: "not verified",
  problem: null,
};
const STATE: EtcdState = {
  isConfigured: true,
  members: [
    { name: "a", endpoint: "a:2379", role: "leader", version: "3.5.1", databaseBytes: 8192, usedBytes: 4096, revision: 12, alarms: [], problem: null },
    { name: "b", endpoint: "b:2379", role: null, version: null, databaseBytes: null, usedBytes: null, revision: null, alarms: ["NOSPACE"], problem: "No answer." },
  ],
  snapshots: [SNAPSHOT],
  snapshotsAt: "s3://bucket/snapshots/ns",
  problem: null,
};

describe("etcd", () => {
  it("shows its members and snapshots, and what is wrong with them", async () => {
    fakeServer({ "GET /etcd": STATE });
    renderApp("/etcd");
    const members = within(await screen.findByRole("table", { name: "Members of etcd" }));
    expect(members.getByText("healthy")).toBeInTheDocument();
    expect(members.getByText("alarm NOSPACE")).toBeInTheDocument();
    expect(members.getByText("No answer.")).toBeInTheDocument();
    expect(screen.getByText("The newest snapshot is 2 d old.")).toBeInTheDocument();
    await expectAccessible();
  });

  it("is backed up on demand", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /etcd": STATE, "POST /etcd/snapshots": SNAPSHOT });
    renderApp("/etcd");
    await user.click(await screen.findByRole("button", { name: "Take a snapshot" }));
    const dialog = within(await screen.findByRole("dialog"));
    const retain = dialog.getByLabelText("Then keep only the newest");
    await user.clear(retain);
    await user.type(retain, "3");
    await user.click(dialog.getByRole("button", { name: "Take snapshot" }));
    expect(await screen.findByText("A snapshot of 4 KiB at revision 12 is taken.")).toBeInTheDocument();
    expect(server.of("POST /etcd/snapshots")[0]?.body).toEqual({ retain: 3 });
    await waitFor(() => expect(server.of("GET /etcd").length).toBeGreaterThan(1));
  });

  it("that cannot be backed up says why", async () => {
    const user = userEvent.setup();
    fakeServer({ "GET /etcd": STATE, "POST /etcd/snapshots": problem(503, "unavailable", "The bucket is out of reach.") });
    renderApp("/etcd");
    await user.click(await screen.findByRole("button", { name: "Take a snapshot" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.click(dialog.getByRole("button", { name: "Take snapshot" }));
    expect(await dialog.findByText("The bucket is out of reach.")).toBeInTheDocument();
  });

  it("is not there on the embedded default, and the page says where the metadata are", async () => {
    fakeServer({ "GET /etcd": { isConfigured: false, members: [], snapshots: [], snapshotsAt: null, problem: null } });
    renderApp("/etcd");
    expect(await screen.findByText("The metadata are in a file of the broker")).toBeInTheDocument();
    expect(screen.queryByRole("button", { name: "Take a snapshot" })).not.toBeInTheDocument();
  });
});
