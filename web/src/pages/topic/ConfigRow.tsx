import { Badge, Button, Group, NativeSelect, Paper, Stack, Text, TextInput } from "@mantine/core";

import type { Config } from "../../api/contract";
import { choicesOf, inWords, withWords } from "./configWords";

interface Props {
  config: Config;
  value: string;
  isEdited: boolean;
  /** Null goes back to the default. */
  onChange: (wanted: string | null) => void;
}

export function ConfigRow({ config, value, isEdited, onChange }: Props) {
  const words = inWords(config.name, value);
  return (
    <Paper withBorder p="sm">
      <Group align="flex-start" justify="space-between" gap="md">
        <Stack gap={4} flex={2} miw={240}>
          <Group gap="xs">
            <Text fw={600} size="sm" component="h3" className="ks-mono" m={0}>
              {config.name}
            </Text>
            {config.isSet && <Mark word="set for this topic" />}
            {isEdited && <Mark word="not saved" />}
          </Group>
          {config.documentation && (
            <Text size="sm" c="dimmed">
              {config.documentation}
            </Text>
          )}
        </Stack>
        <Stack gap={4} flex={1} miw={220}>
          {config.readOnly ? (
            <Text size="sm" className="ks-mono" style={{ overflowWrap: "anywhere" }}>
              {withWords(config.name, config.value)}
            </Text>
          ) : (
            <Field config={config} value={value} onChange={onChange} />
          )}
          {!config.readOnly && (
            <Group justify="space-between" gap="xs">
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                {words && value !== config.default && `${words}; `}
                default {withWords(config.name, config.default)}
              </Text>
              {config.isSet && (
                <Button variant="subtle" size="compact-xs" aria-label={`Reset to default: ${config.name}`} onClick={() => onChange(null)}>
                  Reset to default
                </Button>
              )}
            </Group>
          )}
        </Stack>
      </Group>
    </Paper>
  );
}

function Field({ config, value, onChange }: Pick<Props, "config" | "value" | "onChange">) {
  const choices = choicesOf(config);
  if (choices) {
    return <NativeSelect aria-label={config.name} data={choices} value={value} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
  return (
    <TextInput
      aria-label={config.name}
      value={config.sensitive ? "" : value}
      placeholder={config.sensitive ? "hidden" : undefined}
      onChange={(event) => onChange(event.currentTarget.value)}
      classNames={{ input: "ks-mono" }}
    />
  );
}

function Mark({ word }: { word: string }) {
  return (
    <Badge variant="default" tt="none" fw={500}>
      {word}
    </Badge>
  );
}
