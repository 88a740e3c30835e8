/** A dialog that confirms an action on brokers, runs it, and shows the result. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";

import { ErrorState } from "../../components/ErrorState";

interface Props<Result> {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** Label of the submit button: a verb. */
  action: string;
  danger?: boolean;
  run: () => Promise<Result>;
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

function Body<Result>({ onClose, action, danger, run, result, children }: Omit<Props<Result>, "opened" | "title">) {
  const queryClient = useQueryClient();
  const mutation = useMutation({ mutationFn: run, onSettled: () => queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" }) });

  function submit(event: FormEvent) {
    event.preventDefault();
    mutation.mutate();
  }

  if (mutation.isSuccess) {
    return (
      <Stack>
        <div role="status">{result(mutation.data)}</div>
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
        {mutation.error && <ErrorState error={mutation.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={danger ? "red.8" : undefined} loading={mutation.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
