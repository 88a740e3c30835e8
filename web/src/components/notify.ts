import { notifications } from "@mantine/notifications";

import { errorMessage } from "./ErrorState";

export function notifySuccess(message: string): void {
  notifications.show({ message, color: "teal", withBorder: true, closeButtonProps: { "aria-label": "Close message" } });
}

export function notifyError(error: unknown): void {
  notifications.show({
    title: "Request failed",
    message: errorMessage(error),
    color: "red",
    withBorder: true,
    autoClose: 12_000,
    closeButtonProps: { "aria-label": "Close message" },
  });
}
