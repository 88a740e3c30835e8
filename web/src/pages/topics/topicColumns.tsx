import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";

import type { Topic } from "../../api/contract";
import type { Column } from "../../components/DataTable";
import { ByteRate, Bytes, Count } from "../../components/figures";

/** The keys are the sort fields of the API. */
export const TOPIC_COLUMNS: Column<Topic>[] = [
  {
    key: "name",
    header: "Name",
    sortBy: ({ name }) => name,
    cell: ({ name, internal }) => (
      <>
        <Anchor component={Link} to={`/topics/${encodeURIComponent(name)}`} fw={500}>
          {name}
        </Anchor>
        {internal && (
          <Text span size="xs" c="dimmed" ml={8}>
            internal
          </Text>
        )}
      </>
    ),
  },
  {
    key: "partitions",
    header: "Partitions",
    align: "right",
    sortBy: ({ partitionCount }) => partitionCount,
    cell: ({ partitionCount, leaderlessCount }) => (
      <>
        <Count value={partitionCount} />
        {leaderlessCount > 0 && (
          <Text size="xs" c="var(--ks-bad)">
            {leaderlessCount} without a leader
          </Text>
        )}
      </>
    ),
  },
  { key: "records", header: "Records", align: "right", sortBy: ({ recordCount }) => recordCount, cell: ({ recordCount }) => <Count value={recordCount} /> },
  { key: "size", header: "Size", align: "right", sortBy: ({ sizeBytes }) => sizeBytes, cell: ({ sizeBytes }) => <Bytes value={sizeBytes} /> },
  { key: "produce", header: "Produced", align: "right", sortBy: (topic) => topic.produceBytesPerSecond, cell: (topic) => <ByteRate value={topic.produceBytesPerSecond} /> },
  { key: "fetch", header: "Fetched", align: "right", sortBy: (topic) => topic.fetchBytesPerSecond, cell: (topic) => <ByteRate value={topic.fetchBytesPerSecond} /> },
];
