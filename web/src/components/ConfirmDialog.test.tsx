import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { ApiError } from "../api/client";
import { renderPart } from "../test/render";
import { ConfirmDialog } from "./ConfirmDialog";
import { StateBadge, toneOf } from "./StateBadge";

it("is disabled until the name is typed", async () => {
  const onConfirm = vi.fn(async () => {});
  const onClose = vi.fn();
  renderPart(
    <ConfirmDialog opened onClose={onClose} title="Delete a topic" action="Delete" typed="orders" danger onConfirm={onConfirm}>
      This cannot be undone.
    </ConfirmDialog>,
  );
  const button = await screen.findByRole("button", { name: "Delete" });
  expect(button).toBeDisabled();
  const field = screen.getByRole("textbox", { name: /Type orders to confirm/ });
  await userEvent.type(field, "order{Enter}");
  expect(onConfirm).not.toHaveBeenCalled();
  await userEvent.type(field, "s{Enter}");
  expect(onConfirm).toHaveBeenCalledWith("orders");
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
});

it("stays open and shows the error on failure", async () => {
  const onClose = vi.fn();
  const fail = async () => {
    throw new ApiError(403, "refused", "Not authorized.");
  };
  renderPart(
    <ConfirmDialog opened onClose={onClose} title="Go?" action="Go" onConfirm={fail}>
      Really?
    </ConfirmDialog>,
  );
  await userEvent.click(await screen.findByRole("button", { name: "Go" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("Not authorized.");
  expect(onClose).not.toHaveBeenCalled();
});

it("shows a state as text with a tone", () => {
  renderPart(<StateBadge state="not ready" />);
  expect(screen.getByText("not ready")).toBeVisible();
  expect(["Stable", "unreachable", "draining", "no such state"].map(toneOf)).toEqual(["good", "bad", "warning", "neutral"]);
});
