import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { ApiError } from "../api/client";
import { renderPart } from "../test/render";
import { ConfirmDialog } from "./ConfirmDialog";
import { StateBadge, toneOf } from "./StateBadge";

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
