import { Badge, Button, Group, NativeSelect, Paper, Stack, Text, TextInput } from "@mantine/core";

import type { Config } from "../../api/contract";
import { choicesOf, readableValue, withReadableValue } from "./configValues";

interface Props {
  config: Config;
  value: string;
  isEdited: boolean;
  /** Null resets the config to its default. */
  onChange: (value: string | null) => void;
}

export function ConfigRow({ config, value, isEdited, onChange }: Props) {
  const readable = readableValue(config.name, value);
  return (
    <Paper withBorder p="sm">
      <Group align="flex-start" justify="space-between" gap="md">
        <Stack gap={4} flex={2} miw={240}>
          <Group gap="xs">
            <Text fw={600} size="sm" component="h3" className="ks-mono" m={0}>
              {config.name}
            </Text>
            {config.isSet && <Label text="set on this topic" />}
            {isEdited && <Label text="unsaved" />}
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
              {withReadableValue(config.name, config.value)}
            </Text>
          ) : (
            <Field config={config} value={value} onChange={onChange} />
          )}
          {!config.readOnly && (
            <Group justify="space-between" gap="xs">
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                {readable && value !== config.default && `${readable}; `}
                default {withReadableValue(config.name, config.default)}
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

function Label({ text }: { text: string }) {
  return (
    <Badge variant="default" tt="none" fw={500}>
      {text}
    </Badge>
  );
}
