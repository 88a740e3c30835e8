import { Button, Group, Modal, type ModalProps, Stack } from "@mantine/core";
import type { ReactNode } from "react";

import { ErrorState } from "./ErrorState";

interface Props {
  title: string;
  /** Label of the submit button: a verb. */
  action: string;
  opened: boolean;
  isBusy: boolean;
  /** True if all required fields are valid. */
  isReady?: boolean;
  error: Error | null;
  size?: ModalProps["size"];
  onClose: () => void;
  onSubmit: () => void;
  children: ReactNode;
}

/** A dialog with a form; on an error it stays open and keeps the input. */
export function FormDialog({ title, action, opened, isBusy, isReady = true, error, size, onClose, onSubmit, children }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} size={size} closeButtonProps={{ "aria-label": "Close" }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) onSubmit();
        }}
      >
        <Stack>
          {children}
          {error && <ErrorState error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isBusy} disabled={!isReady}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
