import { Button } from "@mantine/core";
import { IconArrowsMoveHorizontal, IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";

import { api, at } from "../../api/client";
import type { GroupDetail } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { notifySuccess } from "../../components/notify";
import { ResetDialog } from "./ResetDialog";

export function GroupActions({ detail }: { detail: GroupDetail }) {
  const name = detail.group;
  const [action, setAction] = useState<"reset" | "delete" | null>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const close = () => setAction(null);

  async function remove(confirm: string) {
    await api.delete(at`/groups/${name}`, { confirm });
    notifySuccess(`Group ${name} deleted.`);
    await navigate("/groups");
    client.removeQueries({ queryKey: ["group", name], type: "inactive" });
    await client.invalidateQueries({ queryKey: ["groups"] });
  }

  return (
    <>
      <Button variant="default" leftSection={<IconArrowsMoveHorizontal size={16} aria-hidden />} onClick={() => setAction("reset")}>
        Reset offsets
      </Button>
      <Button variant="outline" color="var(--ks-bad)" leftSection={<IconTrash size={16} aria-hidden />} onClick={() => setAction("delete")}>
        Delete
      </Button>
      <ResetDialog
        group={name}
        topics={[...new Set(detail.offsets.map(({ topic }) => topic))].sort()}
        hasMembers={detail.members.length > 0}
        isOpen={action === "reset"}
        onClose={close}
        onReset={() => void client.invalidateQueries({ queryKey: ["group", name] })}
      />
      <ConfirmDialog opened={action === "delete"} onClose={close} title={`Delete ${name}`} action="Delete group" typed={name} danger onConfirm={remove}>
        The committed offsets of the group are deleted. A consumer that joins the group again starts according to its auto.offset.reset. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}
