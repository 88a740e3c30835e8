import { Code } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { api } from "../../api/client";
import type { EtcdState } from "../../api/contract";
import { Loaded } from "../../components/Loaded";
import { Note } from "../../components/Note";
import { Page } from "../../components/Page";
import { MembersTable } from "./MembersTable";
import { SnapshotsTable } from "./SnapshotsTable";

const LOOK_MS = 10_000;

export function EtcdPage() {
  const query = useQuery({
    queryKey: ["etcd"],
    queryFn: ({ signal }) => api.get<EtcdState>("/etcd", { signal }),
    refetchInterval: LOOK_MS,
  });
  return (
    <Page title="Metadata" lead="Where the cluster keeps what it knows: topics, owners, offsets, rules.">
      <Loaded query={query}>
        {(state) =>
          state.isConfigured ? (
            <>
              {state.problem && (
                <Note tone="warning" title="Not everything could be read">
                  {state.problem}
                </Note>
              )}
              <MembersTable members={state.members} />
              <SnapshotsTable state={state} />
            </>
          ) : (
            <Note tone="info" title="The metadata are in a file of the broker">
              This is the embedded default: one broker, with its metadata in one file in its data directory. There is no etcd to look at, and to back
              the metadata up is to copy that directory while the broker is stopped. For several brokers, name the members of an etcd in the setting{" "}
              <Code>etcd.endpoints</Code>.
            </Note>
          )
        }
      </Loaded>
    </Page>
  );
}
