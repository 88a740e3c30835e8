import { Button, Code, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";

import { ErrorState } from "./ErrorState";

interface Props {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** Describes the effect, and if it can be undone. */
  children: ReactNode;
  /** Label of the confirm button: a verb. */
  action: string;
  /** Text that the user must type to confirm a destructive action. */
  typed?: string;
  danger?: boolean;
  /** Called with the typed text. The dialog closes on success; on an error it stays open and shows the error. */
  onConfirm: (typed: string) => Promise<unknown>;
}

export function ConfirmDialog(props: Props) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title} closeButtonProps={{ "aria-label": "Close" }}>
      <Body {...props} />
    </Modal>
  );
}

/** A separate component, so that its state is reset each time the dialog opens. */
function Body({ onClose, children, action, typed, danger, onConfirm }: Props) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isReady = typed === undefined || text === typed;

  async function confirm(event: FormEvent) {
    event.preventDefault();
    if (!isReady || isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await onConfirm(text);
      onClose();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void confirm(event)}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        {typed !== undefined && (
          <TextInput
            label={
              <>
                Type <Code>{typed}</Code> to confirm
              </>
            }
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
            autoComplete="off"
            spellCheck={false}
          />
        )}
        {error !== null && <ErrorState error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={danger ? "red.8" : undefined} disabled={!isReady} loading={isBusy}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
