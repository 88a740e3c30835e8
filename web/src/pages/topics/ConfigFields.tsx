import { ActionIcon, Button, Fieldset, Group, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";

import type { ConfigRow } from "./topicForm";

interface Props {
  configs: ConfigRow[];
  onChange: (configs: ConfigRow[]) => void;
}

/** Other topic configs, by name. */
export function ConfigFields({ configs, onChange }: Props) {
  const change = (index: number, changes: Partial<ConfigRow>) => onChange(configs.map((row, position) => (position === index ? { ...row, ...changes } : row)));
  return (
    <Fieldset legend="Other configs" variant="unstyled">
      {configs.map((row, index) => (
        <Group key={index} mb="xs" wrap="nowrap" gap="xs">
          <TextInput
            aria-label={`Name of config ${index + 1}`}
            placeholder="segment.bytes"
            value={row.name}
            onChange={(event) => change(index, { name: event.currentTarget.value })}
            flex={3}
            spellCheck={false}
          />
          <TextInput
            aria-label={`Value of config ${index + 1}`}
            placeholder="1073741824"
            value={row.value}
            onChange={(event) => change(index, { value: event.currentTarget.value })}
            flex={2}
            spellCheck={false}
          />
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove config ${index + 1}`} onClick={() => onChange(configs.filter((_, position) => position !== index))}>
            <IconX size={17} />
          </ActionIcon>
        </Group>
      ))}
      <Button size="compact-sm" variant="subtle" leftSection={<IconPlus size={15} aria-hidden />} onClick={() => onChange([...configs, { name: "", value: "" }])}>
        Add config
      </Button>
    </Fieldset>
  );
}
