/** The headers of a new record; a name may occur more than once. */

import { ActionIcon, Button, Fieldset, Group, Stack, TextInput } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";

import type { HeaderField } from "./newRecord";

interface Props {
  headers: HeaderField[];
  onChange: (headers: HeaderField[]) => void;
}

export function HeaderFields({ headers, onChange }: Props) {
  const nextId = 1 + Math.max(0, ...headers.map(({ id }) => id));
  const replace = (id: number, changes: Partial<HeaderField>) =>
    onChange(headers.map((header) => (header.id === id ? { ...header, ...changes } : header)));
  return (
    <Fieldset legend="Headers" p="sm">
      <Stack gap="xs" align="flex-start">
        {headers.map((header, index) => (
          <Group key={header.id} gap="xs" w="100%" wrap="nowrap">
            <TextInput
              aria-label={`Name of header ${index + 1}`}
              placeholder="Name"
              flex={1}
              value={header.key}
              onChange={(event) => replace(header.id, { key: event.currentTarget.value })}
            />
            <TextInput
              aria-label={`Value of header ${index + 1}`}
              placeholder="Value"
              flex={2}
              value={header.value}
              onChange={(event) => replace(header.id, { value: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove header ${index + 1}`}
              onClick={() => onChange(headers.filter(({ id }) => id !== header.id))}
            >
              <IconTrash size={16} aria-hidden />
            </ActionIcon>
          </Group>
        ))}
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<IconPlus size={14} aria-hidden />}
          onClick={() => onChange([...headers, { id: nextId, key: "", value: "" }])}
        >
          Add header
        </Button>
      </Stack>
    </Fieldset>
  );
}
