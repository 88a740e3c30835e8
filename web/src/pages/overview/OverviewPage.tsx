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

/** The cluster at a glance: whether it is well, what it does, and what it costs. */
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
              <TimeChart title="Throughput" series={overview.throughput} unit="bytes/s" names={{ produce: "Written", fetch: "Read" }} />
              <TimeChart title="Lag of all consumer groups, in records" series={overview.lag} unit="count" names={{ lag: "Lag" }} />
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
          , controlled by{" "}
          <Anchor component={Link} to={`/brokers/${overview.controller}`} size="sm" underline="always">
            broker {overview.controller}
          </Anchor>
        </>
      )}
      , looked at <Time ms={overview.asOfMs} />
    </>
  );
}
