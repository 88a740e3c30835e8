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
    { name: "b", endpoint: "b:2379", role: null, version: null, databaseBytes: null, usedBytes: null, revision: null, alarms: ["NOSPACE"], problem: "Connection refused." },
  ],
  snapshots: [SNAPSHOT],
  snapshotsAt: "s3://bucket/snapshots/ns",
  problem: null,
};

describe("etcd", () => {
  it("shows members and snapshots with their problems", async () => {
    fakeServer({ "GET /etcd": STATE });
    renderApp("/etcd");
    const members = within(await screen.findByRole("table", { name: "etcd members" }));
    expect(members.getByText("healthy")).toBeInTheDocument();
    expect(members.getByText("alarm NOSPACE")).toBeInTheDocument();
    expect(members.getByText("Connection refused.")).toBeInTheDocument();
    expect(screen.getByText("The newest snapshot is 2 d old.")).toBeInTheDocument();
    await expectAccessible();
  });

  it("takes a snapshot", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ "GET /etcd": STATE, "POST /etcd/snapshots": SNAPSHOT });
    renderApp("/etcd");
    await user.click(await screen.findByRole("button", { name: "Take a snapshot" }));
    const dialog = within(await screen.findByRole("dialog"));
    const retain = dialog.getByLabelText("Snapshots to keep");
    await user.clear(retain);
    await user.type(retain, "3");
    await user.click(dialog.getByRole("button", { name: "Take snapshot" }));
    expect(await screen.findByText("Snapshot taken: 4 KiB at revision 12.")).toBeInTheDocument();
    expect(server.of("POST /etcd/snapshots")[0]?.body).toEqual({ retain: 3 });
    await waitFor(() => expect(server.of("GET /etcd").length).toBeGreaterThan(1));
  });

  it("shows the error of a failed snapshot", async () => {
    const user = userEvent.setup();
    fakeServer({ "GET /etcd": STATE, "POST /etcd/snapshots": problem(503, "unavailable", "The bucket is unreachable.") });
    renderApp("/etcd");
    await user.click(await screen.findByRole("button", { name: "Take a snapshot" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.click(dialog.getByRole("button", { name: "Take snapshot" }));
    expect(await dialog.findByText("The bucket is unreachable.")).toBeInTheDocument();
  });

  it("shows a note for the embedded metadata store", async () => {
    fakeServer({ "GET /etcd": { isConfigured: false, members: [], snapshots: [], snapshotsAt: null, problem: null } });
    renderApp("/etcd");
    expect(await screen.findByText("Metadata is stored in a local file")).toBeInTheDocument();
    expect(screen.queryByRole("button", { name: "Take a snapshot" })).not.toBeInTheDocument();
  });
});
