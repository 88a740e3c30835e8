import { Group, List, Paper, Text } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck, IconCircleX, IconHelpCircle } from "@tabler/icons-react";

import type { Health, HealthState } from "../../api/contract";

const LOOKS: Record<HealthState, { title: string; color: string; icon: typeof IconCircleCheck }> = {
  healthy: { title: "Everything is well", color: "var(--ks-ok)", icon: IconCircleCheck },
  degraded: { title: "Some things are not as they should be", color: "var(--ks-warn)", icon: IconAlertTriangle },
  down: { title: "The cluster does not work", color: "var(--ks-bad)", icon: IconCircleX },
  unknown: { title: "It is not known how the cluster is", color: "var(--ks-idle)", icon: IconHelpCircle },
};

/** How the cluster is, in one line, and then why. Changes are read out. */
export function HealthBanner({ health }: { health: Health }) {
  const { title, color, icon: Icon } = LOOKS[health.state];
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
