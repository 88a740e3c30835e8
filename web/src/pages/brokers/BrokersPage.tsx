import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api } from "../../api/client";
import type { Broker } from "../../api/contract";
import { DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { RebalanceDialog } from "./RebalanceDialog";
import { BROKER_COLUMNS } from "./brokerColumns";

const searchText = ({ id, address, rack, state }: Broker) => `${id} ${address ?? ""} ${rack ?? ""} ${state}`;

export function BrokersPage() {
  const query = useQuery({ queryKey: ["brokers"], queryFn: ({ signal }) => api.get<Broker[]>("/brokers", { signal }), refetchInterval: 3_000 });
  const [isRebalancing, setRebalancing] = useState(false);
  return (
    <Page
      title="Brokers"
      lead="Brokers are stateless: partitions move between them without copying data."
      actions={
        <Button variant="default" onClick={() => setRebalancing(true)}>
          Rebalance
        </Button>
      }
    >
      <Loaded query={query}>
        {(brokers) => (
          <DataTable
            label="Brokers"
            minWidth={900}
            columns={BROKER_COLUMNS}
            rows={brokers}
            rowKey={({ id }) => id}
            searchText={searchText}
            initial={{ sort: "id" }}
            empty={<EmptyState title="No brokers are registered.">Start a broker with kafscale broker.</EmptyState>}
          />
        )}
      </Loaded>
      <RebalanceDialog opened={isRebalancing} onClose={() => setRebalancing(false)} />
    </Page>
  );
}
