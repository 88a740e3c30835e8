import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "react-router";

import type { Cost } from "../../api/contract";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { money } from "../../lib/format";

export function CostPanel({ cost }: { cost: Cost }) {
  return (
    <Panel title="Object store cost per day">
      <Stack gap="sm">
        <Facts
          cols={{ base: 3 }}
          facts={[
            { label: "Total", value: money(cost.totalPerDay, cost.currency) },
            { label: "Storage", value: money(cost.storagePerDay, cost.currency) },
            { label: "Requests", value: money(cost.requestsPerDay, cost.currency) },
          ]}
        />
        <Text size="xs" c="dimmed">
          {cost.basis}
        </Text>
        <Anchor component={Link} to="/pipeline" size="sm">
          Cost by topic
        </Anchor>
      </Stack>
    </Panel>
  );
}
