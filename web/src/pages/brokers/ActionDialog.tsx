/** Something that is done to brokers: asked, done, and then told what came of it, in one dialog. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";

import { ErrorState } from "../../components/ErrorState";

interface Props<Result> {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What the button says: a verb. */
  verb: string;
  danger?: boolean;
  act: () => Promise<Result>;
  result: (result: Result) => ReactNode;
  children: ReactNode;
}

export function ActionDialog<Result>({ opened, onClose, title, ...rest }: Props<Result>) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <Body onClose={onClose} {...rest} />
    </Modal>
  );
}

function Body<Result>({ onClose, verb, danger, act, result, children }: Omit<Props<Result>, "opened" | "title">) {
  const queryClient = useQueryClient();
  const action = useMutation({ mutationFn: act, onSettled: () => queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" }) });

  function submit(event: FormEvent) {
    event.preventDefault();
    action.mutate();
  }

  if (action.isSuccess) {
    return (
      <Stack>
        <div role="status">{result(action.data)}</div>
        <Group justify="flex-end">
          <Button onClick={onClose} data-autofocus>
            Close
          </Button>
        </Group>
      </Stack>
    );
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        {children}
        {action.error && <ErrorState error={action.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={danger ? "red.8" : undefined} loading={action.isPending}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
