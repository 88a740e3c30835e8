import { useQueryClient } from "@tanstack/react-query";

import { api, at } from "../../api/client";
import type { DeleteTopic } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { notifySuccess } from "../../components/notify";

interface Props {
  /** Null while the dialog is closed. */
  topic: string | null;
  onClose: () => void;
  onDeleted?: () => void;
}

export function DeleteTopicDialog({ topic, onClose, onDeleted }: Props) {
  const queryClient = useQueryClient();

  async function deleteTopic(confirm: string) {
    await api.delete(at`/topics/${topic ?? ""}`, { confirm } satisfies DeleteTopic);
    notifySuccess(`Topic ${topic} deleted.`);
    await queryClient.invalidateQueries({ queryKey: ["topics"] });
    onDeleted?.();
  }

  return (
    <ConfirmDialog opened={topic !== null} onClose={onClose} title="Delete a topic" action="Delete" danger typed={topic ?? ""} onConfirm={deleteTopic}>
      The topic and all of its records are deleted. This cannot be undone.
    </ConfirmDialog>
  );
}
