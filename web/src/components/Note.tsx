import { Alert } from "@mantine/core";
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Props {
  tone: "info" | "warning" | "bad";
  title?: string;
  children: ReactNode;
}

const COLOURS: Record<Props["tone"], string> = {
  info: "var(--mantine-primary-color-filled)",
  warning: "var(--ks-warn)",
  bad: "var(--ks-bad)",
};

/** A note for the user. The text has the normal text colour, for contrast. */
export function Note({ tone, title, children }: Props) {
  const Icon = tone === "info" ? IconInfoCircle : IconAlertTriangle;
  return (
    <Alert
      variant="outline"
      role="note"
      title={title}
      icon={<Icon aria-hidden />}
      styles={{
        root: { borderColor: COLOURS[tone] },
        icon: { color: COLOURS[tone] },
        title: { color: "var(--mantine-color-text)" },
        message: { overflowWrap: "anywhere" },
      }}
    >
      {children}
    </Alert>
  );
}
