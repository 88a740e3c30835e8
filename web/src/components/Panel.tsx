import { Group, Paper, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

interface Props {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

/** A section of a page with a heading, which is a landmark for screen readers. */
export function Panel({ title, actions, children }: Props) {
  const id = useId();
  return (
    <Paper component="section" aria-labelledby={id} withBorder p="md" style={{ minWidth: 0 }}>
      <Group justify="space-between" mb="sm" gap="xs">
        <Title id={id} order={2} size="h5">
          {title}
        </Title>
        {actions}
      </Group>
      {children}
    </Paper>
  );
}
