import { Group, List, Paper, Text } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck, IconCircleX, IconHelpCircle } from "@tabler/icons-react";

import type { Health, HealthState } from "../../api/contract";

const STYLES: Record<HealthState, { title: string; color: string; icon: typeof IconCircleCheck }> = {
  healthy: { title: "Cluster is healthy", color: "var(--ks-ok)", icon: IconCircleCheck },
  degraded: { title: "Cluster is degraded", color: "var(--ks-warn)", icon: IconAlertTriangle },
  down: { title: "Cluster is down", color: "var(--ks-bad)", icon: IconCircleX },
  unknown: { title: "Cluster health is unknown", color: "var(--ks-idle)", icon: IconHelpCircle },
};

/** The health of the cluster and the reasons. Screen readers announce changes. */
export function HealthBanner({ health }: { health: Health }) {
  const { title, color, icon: Icon } = STYLES[health.state];
  return (
    <Paper withBorder p="md" role="status" aria-label="Health" style={{ borderLeft: `5px solid ${color}` }}>
      <Group gap="sm" wrap="nowrap">
        <Icon color={color} size={26} aria-hidden style={{ flex: "none" }} />
        <Text fw={600}>{title}</Text>
      </Group>
      {health.reasons.length > 0 && (
        <List mt="xs" spacing={4} size="sm" ml={4}>
          {health.reasons.map(({ severity, subject, sentence }) => (
            <List.Item key={`${subject} ${sentence}`}>
              <Text span fw={600} size="sm" c={severity === "critical" ? "var(--ks-bad)" : undefined}>
                {subject}
              </Text>
              : {sentence}
            </List.Item>
          ))}
        </List>
      )}
    </Paper>
  );
}
