import { notifications } from "@mantine/notifications";

import { sentenceOf } from "./ErrorState";

export function notifyDone(message: string): void {
  notifications.show({ message, color: "teal", withBorder: true, closeButtonProps: { "aria-label": "Close the message" } });
}

export function notifyError(error: unknown): void {
  notifications.show({
    title: "This did not work",
    message: sentenceOf(error),
    color: "red",
    withBorder: true,
    autoClose: 12_000,
    closeButtonProps: { "aria-label": "Close the message" },
  });
}
