import { Anchor, SimpleGrid } from "@mantine/core";
import { Link } from "react-router";

import type { Overview } from "../../api/contract";
import { useOverview } from "../../app/live";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { TimeChart } from "../../components/TimeChart";
import { Time } from "../../components/figures";
import { BrokerPanel } from "./BrokerPanel";
import { CostPanel } from "./CostPanel";
import { HealthBanner } from "./HealthBanner";
import { LagPanel } from "./LagPanel";
import { MetadataPanel, StorePanel } from "./StorePanels";
import { TotalTiles } from "./TotalTiles";

/** Health, throughput, lag, storage and cost of the cluster. */
export function OverviewPage() {
  const query = useOverview();
  return (
    <Page title="Overview" lead={query.data && <Lead overview={query.data} />}>
      <Loaded query={query} lines={8}>
        {(overview) => (
          <>
            <HealthBanner health={overview.health} />
            <TotalTiles totals={overview.totals} />
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              <TimeChart title="Throughput" series={overview.throughput} unit="bytes/s" names={{ produce: "Produced", fetch: "Fetched" }} />
              <TimeChart title="Total consumer lag (records)" series={overview.lag} unit="count" names={{ lag: "Lag" }} />
            </SimpleGrid>
            <SimpleGrid cols={{ base: 1, md: 2, lg: 3 }}>
              <StorePanel store={overview.store} />
              <MetadataPanel metadata={overview.metadata} />
              <CostPanel cost={overview.cost} />
            </SimpleGrid>
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              <BrokerPanel brokers={overview.brokers} />
              <LagPanel lags={overview.topLags} />
            </SimpleGrid>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Lead({ overview }: { overview: Overview }) {
  return (
    <>
      Cluster <span className="ks-mono">{overview.clusterId}</span>
      {overview.controller !== null && (
        <>
          , controller{" "}
          <Anchor component={Link} to={`/brokers/${overview.controller}`} size="sm" underline="always">
            broker {overview.controller}
          </Anchor>
        </>
      )}
      , updated <Time ms={overview.asOfMs} />
    </>
  );
}
