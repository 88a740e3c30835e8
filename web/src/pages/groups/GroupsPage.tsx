import { Anchor, NativeSelect, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";

import { api } from "../../api/client";
import type { Group, GroupPage } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Count } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { useTableView } from "../../components/tableView";

const REFETCH_INTERVAL_MS = 5_000;
/** Group states of the classic and the consumer protocol. */
const STATES = ["Stable", "Empty", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "Dead"];
const SHOWN_TOPICS = 3;

const COLUMNS: Column<Group>[] = [
  {
    key: "group",
    header: "Group",
    cell: (row) => (
      <Anchor component={Link} to={`/groups/${encodeURIComponent(row.group)}`} size="sm" style={{ overflowWrap: "anywhere" }}>
        {row.group}
      </Anchor>
    ),
  },
  { key: "state", header: "State", cell: (row) => <StateBadge state={row.state} /> },
  { key: "type", header: "Protocol", cell: (row) => row.type },
  { key: "topics", header: "Topics", cell: (row) => <Topics topics={row.topics} /> },
  { key: "members", header: "Members", align: "right", cell: (row) => <Count value={row.memberCount} /> },
  { key: "lag", header: "Lag", align: "right", cell: (row) => <Count value={row.lag} /> },
];

export function GroupsPage() {
  const [view, setView] = useTableView();
  const [params, setParams] = useSearchParams();
  const state = params.get("state") ?? "";
  const query = useQuery({
    queryKey: ["groups", view, state],
    queryFn: ({ signal }) =>
      api.get<GroupPage>("/groups", { query: { search: view.search, state, page: view.page, size: view.size }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_INTERVAL_MS,
  });

  function choose(chosen: string) {
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (chosen) after.set("state", chosen);
      else after.delete("state");
      after.delete("page");
      return after;
    });
  }

  return (
    <Page title="Consumer groups" lead="Consumer groups with their state, topics and lag.">
      <Loaded query={query}>
        {(page) => (
          <DataTable
            label="Groups"
            columns={COLUMNS}
            rows={page.items}
            rowKey={(row) => row.group}
            searchText={(row) => row.group}
            remote={{ total: page.total, view, onView: setView }}
            tools={
              <NativeSelect
                aria-label="State"
                data={[{ value: "", label: "All states" }, ...STATES]}
                value={state}
                onChange={(event) => choose(event.currentTarget.value)}
              />
            }
            empty={
              state ? (
                <EmptyState title={`No consumer groups in state ${state}.`} />
              ) : (
                <EmptyState title="There are no consumer groups yet.">
                  A group appears when a consumer with a group.id subscribes to a topic.
                </EmptyState>
              )
            }
          />
        )}
      </Loaded>
    </Page>
  );
}

function Topics({ topics }: { topics: string[] }) {
  const more = topics.length - SHOWN_TOPICS;
  return (
    <Text size="sm" span title={topics.join(", ")}>
      {topics.slice(0, SHOWN_TOPICS).join(", ")}
      {more > 0 && ` and ${more} more`}
    </Text>
  );
}
