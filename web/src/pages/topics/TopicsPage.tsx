import { ActionIcon, Button, Group, Switch, Tooltip } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { api } from "../../api/client";
import type { Topic, TopicPage } from "../../api/contract";
import { DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { useTableView } from "../../components/tableView";
import { CreateTopicDialog } from "./CreateTopicDialog";
import { DeleteTopicDialog } from "./DeleteTopicDialog";
import { TOPIC_COLUMNS } from "./topicColumns";

const NAME = (topic: Topic) => topic.name;

export function TopicsPage() {
  const [view, setView] = useTableView({ sort: "name" });
  const [params, setParams] = useSearchParams();
  const internal = params.get("internal") === "true";
  const [isCreating, setCreating] = useState(false);
  const [topicToDelete, setTopicToDelete] = useState<string | null>(null);
  const query = useQuery({
    queryKey: ["topics", { ...view, internal }],
    queryFn: ({ signal }) => api.get<TopicPage>("/topics", { query: { ...view, internal }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
  const columns = useMemo(
    () => [...TOPIC_COLUMNS, { key: "actions", header: "Actions", isHeaderHidden: true, align: "right" as const, width: 60, cell: (topic: Topic) => <DeleteButton topic={topic} onDelete={setTopicToDelete} /> }],
    [],
  );

  function showInternal(isShown: boolean) {
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (isShown) after.set("internal", "true");
        else after.delete("internal");
        after.delete("page");
        return after;
      },
      { replace: true },
    );
  }

  const create = (
    <Button leftSection={<IconPlus size={17} aria-hidden />} onClick={() => setCreating(true)}>
      Create a topic
    </Button>
  );
  return (
    <Page title="Topics" actions={create}>
      <Loaded query={query} lines={8}>
        {(page) => (
          <DataTable
            label="Topics"
            minWidth={760}
            columns={columns}
            rows={page.items}
            rowKey={NAME}
            searchText={NAME}
            remote={{ total: page.total, view, onView: setView }}
            tools={
              <Group>
                <Switch label="Show internal topics" checked={internal} onChange={(event) => showInternal(event.currentTarget.checked)} />
              </Group>
            }
            empty={<EmptyState title="There are no topics yet.">Create one, or produce to one if automatic topic creation is enabled.</EmptyState>}
          />
        )}
      </Loaded>
      <CreateTopicDialog opened={isCreating} onClose={() => setCreating(false)} />
      <DeleteTopicDialog topic={topicToDelete} onClose={() => setTopicToDelete(null)} />
    </Page>
  );
}

function DeleteButton({ topic, onDelete }: { topic: Topic; onDelete: (name: string) => void }) {
  if (topic.internal) return null;
  return (
    <Tooltip label={`Delete ${topic.name}`}>
      <ActionIcon variant="subtle" color="gray" aria-label={`Delete ${topic.name}`} onClick={() => onDelete(topic.name)}>
        <IconTrash size={17} />
      </ActionIcon>
    </Tooltip>
  );
}
