import { Stack, Text } from "@mantine/core";
import { IconMoodEmpty } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Props {
  /** What is missing, as a sentence. */
  title: string;
  /** What the user can do: a sentence or a button. */
  children?: ReactNode;
}

export function EmptyState({ title, children }: Props) {
  return (
    <Stack align="center" gap="xs" py="xl" ta="center">
      <IconMoodEmpty size={34} stroke={1.3} color="var(--ks-idle)" aria-hidden />
      <Text fw={500}>{title}</Text>
      {children && (
        <Text size="sm" c="dimmed" component="div">
          {children}
        </Text>
      )}
    </Stack>
  );
}
