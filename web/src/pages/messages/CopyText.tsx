/** A button that copies a text. Without TLS there is no Clipboard API, and execCommand is used. */

import { Button } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useEffect, useState } from "react";

interface Props {
  label: string;
  text: () => string;
}

const FEEDBACK_MS = 1_500;

export function CopyText({ label, text }: Props) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  useEffect(() => {
    if (state === "ready") return;
    const timer = setTimeout(() => setState("ready"), FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const icon = state === "copied" ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />;
  return (
    <Button
      variant="default"
      size="compact-xs"
      leftSection={icon}
      onClick={async () => setState((await copy(text())) ? "copied" : "failed")}
    >
      <span aria-live="polite">{{ ready: label, copied: "Copied", failed: "Copy failed" }[state]}</span>
    </Button>
  );
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithExecCommand(text);
  }
}

function copyWithExecCommand(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
  }
}
