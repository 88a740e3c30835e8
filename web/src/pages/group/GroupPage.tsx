import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";

import { api, at } from "../../api/client";
import type { GroupDetail } from "../../api/contract";
import { Facts } from "../../components/Facts";
import { Count } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { StateBadge } from "../../components/StateBadge";
import { TimeChart } from "../../components/TimeChart";
import { GroupActions } from "./GroupActions";
import { MembersTable } from "./MembersTable";
import { OffsetsTable } from "./OffsetsTable";

const REFETCH_INTERVAL_MS = 5_000;

export function GroupPage() {
  const { name = "" } = useParams();
  const query = useQuery({
    queryKey: ["group", name],
    queryFn: ({ signal }) => api.get<GroupDetail>(at`/groups/${name}`, { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Page
      title={name}
      crumbs={[{ label: "Consumer groups", to: "/groups" }]}
      badge={query.data && <StateBadge state={query.data.state} />}
      actions={query.data && <GroupActions detail={query.data} />}
    >
      <Loaded query={query}>
        {(detail) => (
          <>
            <Facts
              cols={{ base: 2, sm: 3, lg: 5 }}
              facts={[
                { label: "Lag", value: <Count value={detail.lag} /> },
                { label: "Members", value: <Count value={detail.members.length} /> },
                { label: "Protocol", value: [detail.type, detail.protocolType].filter(Boolean).join(", ") || "none" },
                { label: "Assignor", value: detail.assignor || "none" },
                { label: "Epoch", value: <Count value={detail.epoch} /> },
              ]}
            />
            <TimeChart title="Lag by topic" series={detail.lagHistory} unit="count" empty="No data yet: the group has committed no offsets, or the console has just started." />
            <OffsetsTable offsets={detail.offsets} />
            <MembersTable members={detail.members} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
