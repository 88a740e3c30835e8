/** Keys that work everywhere. They can be turned off, because some people's tools type letters by themselves. */
import { Kbd, Modal, Switch, Table } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { NAVIGATION } from "./navigation";

const SECOND_KEY_WITHIN_MS = 1_500;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>("input[data-search]");
  search?.focus();
  search?.select();
  return search !== null;
}

export function Keys() {
  const navigate = useNavigate();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isOn, setOn] = useLocalStorage({ key: "kafscale-keys", defaultValue: true });
  const goingSince = useRef(0);

  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // A dialog has the keyboard to itself.
      if (document.querySelector("[role=dialog]")) return;
      if (event.key === "?") return setHelpOpen(true);
      if (!isOn) return;
      const isGoing = Date.now() - goingSince.current < SECOND_KEY_WITHIN_MS;
      goingSince.current = 0;
      const page = isGoing && NAVIGATION.find(({ key }) => key === event.key);
      if (page) void navigate(page.to);
      else if (event.key === "g") goingSince.current = Date.now();
      else if (event.key === "/" && focusSearch()) event.preventDefault();
    }
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [navigate, isOn]);

  return (
    <Modal opened={isHelpOpen} onClose={() => setHelpOpen(false)} title="Keys" closeButtonProps={{ "aria-label": "Close" }}>
      <Table aria-label="Keys">
        <Table.Tbody>
          <KeyRow keys={["/"]} does="Search" />
          <KeyRow keys={["↑", "↓"]} does="Go through the rows of a table" />
          {NAVIGATION.map(({ key, label }) => (
            <KeyRow key={key} keys={["g", key]} does={`Go to ${label}`} />
          ))}
          <KeyRow keys={["?"]} does="Show this" />
        </Table.Tbody>
      </Table>
      <Switch mt="md" label="Keys other than ? are on" checked={isOn} onChange={(event) => setOn(event.currentTarget.checked)} />
    </Modal>
  );
}

function KeyRow({ keys, does }: { keys: string[]; does: string }) {
  return (
    <Table.Tr>
      <Table.Td w={110}>
        {keys.map((key, index) => (
          <Kbd key={index} mr={4}>
            {key}
          </Kbd>
        ))}
      </Table.Td>
      <Table.Td>{does}</Table.Td>
    </Table.Tr>
  );
}
