/** Keyboard shortcuts of all pages. They can be disabled, because some assistive tools send letter keys (WCAG 2.1.4). */
import { Kbd, Modal, Switch, Table } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { NAVIGATION } from "./navigation";

const SEQUENCE_TIMEOUT_MS = 1_500;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>("input[data-search]");
  search?.focus();
  search?.select();
  return search !== null;
}

export function KeyboardShortcuts() {
  const navigate = useNavigate();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isEnabled, setEnabled] = useLocalStorage({ key: "kafscale-keys", defaultValue: true });
  const prefixPressedAt = useRef(0);

  useEffect(() => {
    function onKeyDown(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // Shortcuts are disabled while a dialog is open.
      if (document.querySelector("[role=dialog]")) return;
      if (event.key === "?") return setHelpOpen(true);
      if (!isEnabled) return;
      const hasPrefix = Date.now() - prefixPressedAt.current < SEQUENCE_TIMEOUT_MS;
      prefixPressedAt.current = 0;
      const page = hasPrefix && NAVIGATION.find(({ key }) => key === event.key);
      if (page) void navigate(page.to);
      else if (event.key === "g") prefixPressedAt.current = Date.now();
      else if (event.key === "/" && focusSearch()) event.preventDefault();
    }
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [navigate, isEnabled]);

  return (
    <Modal opened={isHelpOpen} onClose={() => setHelpOpen(false)} title="Keyboard shortcuts" closeButtonProps={{ "aria-label": "Close" }}>
      <Table aria-label="Keyboard shortcuts">
        <Table.Tbody>
          <ShortcutRow keys={["/"]} description="Search" />
          <ShortcutRow keys={["↑", "↓"]} description="Move between table rows" />
          {NAVIGATION.map(({ key, label }) => (
            <ShortcutRow key={key} keys={["g", key]} description={`Go to ${label}`} />
          ))}
          <ShortcutRow keys={["?"]} description="Show this help" />
        </Table.Tbody>
      </Table>
      <Switch mt="md" label="Enable shortcuts other than ?" checked={isEnabled} onChange={(event) => setEnabled(event.currentTarget.checked)} />
    </Modal>
  );
}

function ShortcutRow({ keys, description }: { keys: string[]; description: string }) {
  return (
    <Table.Tr>
      <Table.Td w={110}>
        {keys.map((key, index) => (
          <Kbd key={index} mr={4}>
            {key}
          </Kbd>
        ))}
      </Table.Td>
      <Table.Td>{description}</Table.Td>
    </Table.Tr>
  );
}
