import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { AccessOptions, Acl } from "../../api/contract";
import { expectAccessible, renderApp } from "../../test/render";
import { fakeServer, noContent, problem } from "../../test/server";

const OPTIONS: AccessOptions = {
  operations: { TOPIC: ["READ", "WRITE"], CLUSTER: ["ALTER"] },
  patternTypes: ["LITERAL", "PREFIXED"],
  mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
  quotaKeys: ["producer_byte_rate", "request_percentage", "connection_creation_rate"],
};
const ACL: Acl = {
  principal: "User:ada",
  host: "*",
  operation: "READ",
  permission: "DENY",
  resourceType: "TOPIC",
  resourceName: "shop-",
  patternType: "PREFIXED",
};
const ROUTES = {
  "GET /access/options": OPTIONS,
  "GET /acls": { isEnabled: true, items: [ACL], problem: null },
  "GET /users": { items: [{ name: "ada", mechanisms: ["SCRAM-SHA-512"] }], problem: null },
  "GET /quotas": { items: [{ entity: { user: "ada", "client-id": null }, values: { producer_byte_rate: 1048576 } }], problem: null },
};

describe("ACLs", () => {
  it("are listed, and deleted after confirmation", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "DELETE /acls": noContent });
    renderApp("/access");
    const row = (await screen.findByText("User:ada")).closest("tr");
    expect(row).toHaveTextContent("User:adadenyREADTOPICshop-…prefixedany");
    await expectAccessible();
    await user.click(screen.getByRole("button", { name: /^Delete: User:ada is denied READ/ }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Delete ACL" }));
    expect(await screen.findByText("ACL deleted.")).toBeInTheDocument();
    expect(server.of("DELETE /acls")[0]?.body).toEqual(ACL);
    expect(server.of("GET /acls").length).toBeGreaterThan(1);
  });

  it("offer the operations of the resource type", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "POST /acls": ACL });
    renderApp("/access");
    await user.click(await screen.findByRole("button", { name: "Create ACL" }));
    const dialog = within(await screen.findByRole("dialog"));
    expect(dialog.getByRole("button", { name: "Create ACL" })).toBeDisabled();
    await user.type(dialog.getByLabelText(/Principal/), "User:bob");
    await user.selectOptions(dialog.getByLabelText("Resource type"), "CLUSTER");
    expect(within(dialog.getByLabelText("Operation")).getAllByRole("option").map((option) => option.textContent)).toEqual(["ALTER"]);
    await expectAccessible();
    await user.click(dialog.getByRole("button", { name: "Create ACL" }));
    await waitFor(() => expect(server.of("POST /acls")).toHaveLength(1));
    expect(server.of("POST /acls")[0]?.body).toEqual({
      principal: "User:bob",
      operation: "ALTER",
      resourceType: "CLUSTER",
      resourceName: "kafka-cluster",
      host: "*",
      permission: "ALLOW",
      patternType: "LITERAL",
    });
  });

  it("show a warning while authorization is disabled", async () => {
    fakeServer({ ...ROUTES, "GET /acls": { isEnabled: false, items: [], problem: "Set authorization.enabled first." } });
    renderApp("/access");
    expect(await screen.findByText("Authorization is disabled")).toBeInTheDocument();
    expect(screen.getByText(/Set authorization.enabled first/)).toBeInTheDocument();
    expect(screen.getByRole("button", { name: "Create ACL" })).toBeDisabled();
  });
});

describe("users", () => {
  it("are created, and the password is not kept", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "POST /users": { name: "bob", mechanisms: [] } });
    renderApp("/access?part=users");
    await user.click(await screen.findByRole("button", { name: "Create user" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.type(dialog.getByLabelText(/^Name/), "bob");
    await user.type(dialog.getByLabelText(/^Password/), "secret");
    await expectAccessible();
    await user.click(dialog.getByRole("button", { name: "Create user" }));
    expect(await screen.findByText("User bob created.")).toBeInTheDocument();
    expect(server.of("POST /users")[0]?.body).toEqual({ name: "bob", password: "secret", mechanisms: [] });
    await user.click(screen.getByRole("button", { name: "Create user" }));
    expect(within(await screen.findByRole("dialog")).getByLabelText(/^Password/)).toHaveValue("");
  });

  it("get a new password", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "PUT /users/ada": problem(400, "invalid-request", "The password is too short.") });
    renderApp("/access?part=users");
    await user.click(await screen.findByRole("button", { name: "Change password of ada" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.type(dialog.getByLabelText(/^Password/), "x");
    await user.click(dialog.getByRole("button", { name: "Change password" }));
    expect(await dialog.findByText("The password is too short.")).toBeInTheDocument();
    expect(server.of("PUT /users/ada")[0]?.body).toEqual({ password: "x" });
  });

  it("are deleted after the name is typed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "DELETE /users/ada": noContent });
    renderApp("/access?part=users");
    await user.click(await screen.findByRole("button", { name: "Delete ada" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.type(dialog.getByRole("textbox"), "ada");
    await user.click(dialog.getByRole("button", { name: "Delete user" }));
    await waitFor(() => expect(server.of("DELETE /users/ada")).toHaveLength(1));
  });
});

describe("quotas", () => {
  it("are set with units", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "PUT /quotas": ROUTES["GET /quotas"] });
    renderApp("/access?part=quotas");
    expect(await screen.findByText("user ada, client-id (default)")).toBeInTheDocument();
    expect(screen.getByText("1 MiB/s")).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Set quota" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.click(dialog.getByLabelText("Default for entities without their own quota"));
    await user.type(dialog.getByLabelText(/Limit/), "10 MiB");
    await expectAccessible();
    await user.click(dialog.getByRole("button", { name: "Set quota" }));
    await waitFor(() => expect(server.of("PUT /quotas")[0]?.body).toEqual({ entity: { user: null }, values: { producer_byte_rate: 10485760 } }));
  });

  it("are removed", async () => {
    const user = userEvent.setup();
    const server = fakeServer({ ...ROUTES, "PUT /quotas": ROUTES["GET /quotas"] });
    renderApp("/access?part=quotas");
    await user.click(await screen.findByRole("button", { name: /^Remove producer_byte_rate/ }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Remove quota" }));
    await waitFor(() =>
      expect(server.of("PUT /quotas")[0]?.body).toEqual({ entity: { user: "ada", "client-id": null }, values: { producer_byte_rate: null } }),
    );
  });
});
