import { Code } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { api } from "../../api/client";
import type { EtcdState } from "../../api/contract";
import { Loaded } from "../../components/Loaded";
import { Note } from "../../components/Note";
import { Page } from "../../components/Page";
import { MembersTable } from "./MembersTable";
import { SnapshotsTable } from "./SnapshotsTable";

const REFETCH_INTERVAL_MS = 10_000;

export function EtcdPage() {
  const query = useQuery({
    queryKey: ["etcd"],
    queryFn: ({ signal }) => api.get<EtcdState>("/etcd", { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Page title="Metadata" lead="Topics, partition owners, committed offsets and ACLs of the cluster.">
      <Loaded query={query}>
        {(state) =>
          state.isConfigured ? (
            <>
              {state.problem && (
                <Note tone="warning" title="Incomplete data">
                  {state.problem}
                </Note>
              )}
              <MembersTable members={state.members} />
              <SnapshotsTable state={state} />
            </>
          ) : (
            <Note tone="info" title="Metadata is stored in a local file">
              The cluster uses the embedded metadata store: one broker, with its metadata in one file in its data directory. To back it up, copy the data
              directory while the broker is stopped. To run several brokers, configure etcd with the setting{" "}
              <Code>etcd.endpoints</Code>.
            </Note>
          )
        }
      </Loaded>
    </Page>
  );
}
