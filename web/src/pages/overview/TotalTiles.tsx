import { Paper, SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { Totals } from "../../api/contract";
import { ByteRate, Bytes, Count } from "../../components/figures";
import { plural, rate } from "../../lib/format";
import classes from "./TotalTiles.module.css";

export function TotalTiles({ totals }: { totals: Totals }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, xl: 6 }}>
      <Tile to="/topics" label="Topics" value={<Count value={totals.topicCount} />}>
        {plural(totals.partitionCount, "partition")}
        {totals.leaderlessCount > 0 && <strong>, {totals.leaderlessCount} without a leader</strong>}
      </Tile>
      <Tile to="/groups" label="Consumer groups" value={<Count value={totals.groupCount} />}>
        Lag: <Count value={totals.consumerLag} /> records
      </Tile>
      <Tile label="Produced" value={<ByteRate value={totals.produceBytesPerSecond} />}>
        {rate(totals.produceRequestsPerSecond, "requests")}
      </Tile>
      <Tile label="Fetched" value={<ByteRate value={totals.fetchBytesPerSecond} />}>
        {rate(totals.fetchRequestsPerSecond, "requests")}
      </Tile>
      <Tile label="Stored" value={<Bytes value={totals.storedBytes} />}>
        in the object store
      </Tile>
      <Tile to="/brokers" label="Connections" value={<Count value={totals.connections} />}>
        to all brokers
      </Tile>
    </SimpleGrid>
  );
}

interface TileProps {
  label: string;
  value: ReactNode;
  to?: string;
  children: ReactNode;
}

function Tile({ label, value, to, children }: TileProps) {
  return (
    <Paper withBorder p="md" className={classes.tile}>
      <Text size="sm" c="dimmed">
        {to ? (
          <Link to={to} className={classes.link}>
            {label}
          </Link>
        ) : (
          label
        )}
      </Text>
      <Text className={classes.value}>{value}</Text>
      <Text size="xs" c="dimmed">
        {children}
      </Text>
    </Paper>
  );
}
