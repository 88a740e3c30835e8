/** The frame of all pages of a topic: title, key figures, actions and links to the parts. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { api, at } from "../../api/client";
import type { TopicDetail } from "../../api/contract";
import { Facts } from "../../components/Facts";
import { ByteRate, Bytes, Count } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { percent } from "../../lib/format";
import { TopicActions } from "./TopicActions";
import { TopicParts, type TopicPart } from "./TopicParts";

const REFETCH_INTERVAL_MS = 5_000;

interface Props {
  name: string;
  part: TopicPart;
  children: (detail: TopicDetail) => ReactNode;
}

export function TopicFrame({ name, part, children }: Props) {
  const query = useQuery({
    queryKey: ["topic", name],
    queryFn: ({ signal }) => api.get<TopicDetail>(at`/topics/${name}`, { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Page
      title={name}
      crumbs={[{ label: "Topics", to: "/topics" }]}
      badge={query.data && <TopicState detail={query.data} />}
      actions={query.data && <TopicActions detail={query.data} />}
    >
      <Loaded query={query}>
        {(detail) => (
          <>
            <Figures detail={detail} />
            <TopicParts name={name} part={part} />
            {children(detail)}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function TopicState({ detail: { topic } }: { detail: TopicDetail }) {
  if (topic.leaderlessCount > 0) {
    return <StateBadge state={`${topic.leaderlessCount} without a leader`} tone="bad" title="These partitions are unavailable." />;
  }
  return <StateBadge state={topic.internal ? "internal" : "online"} />;
}

function Figures({ detail: { topic, partitions } }: { detail: TopicDetail }) {
  const walRecordCount = partitions.reduce((sum, { highWatermark, rolledOffset }) => sum + ((highWatermark ?? 0) - (rolledOffset ?? 0)), 0);
  return (
    <Facts
      cols={{ base: 2, sm: 3, lg: 6 }}
      facts={[
        { label: "Partitions", value: <Count value={topic.partitionCount} /> },
        { label: "Records", value: <Count value={topic.recordCount} /> },
        { label: "Records in WAL", value: <Count value={walRecordCount} /> },
        { label: "Size", value: <Bytes value={topic.sizeBytes} /> },
        { label: "Produced", value: <ByteRate value={topic.produceBytesPerSecond} /> },
        { label: "Fetched", value: <ByteRate value={topic.fetchBytesPerSecond} /> },
        ...(topic.dirtyRatio === null ? [] : [{ label: "Not compacted yet", value: percent(topic.dirtyRatio) }]),
      ]}
    />
  );
}
