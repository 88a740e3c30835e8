/** The settings of a topic: what each does, its default, and changes that are saved together. */

import { Button, Group, Paper, Stack, Switch, Text, TextInput, Title, VisuallyHidden } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { Config } from "../../api/contract";
import { EmptyState } from "../../components/EmptyState";
import { ErrorState } from "../../components/ErrorState";
import { notifyDone } from "../../components/notify";
import { plural } from "../../lib/format";
import { edited, type Edits, matching, shownValue, toAlterConfigs } from "./configEdits";
import { ConfigRow } from "./ConfigRow";

interface Props {
  topic: string;
  configs: Config[];
}

export function ConfigEditor({ topic, configs }: Props) {
  const [edits, setEdits] = useState<Edits>({});
  const [search, setSearch] = useState("");
  const [changedOnly, setChangedOnly] = useState(false);
  const client = useQueryClient();
  const editCount = Object.keys(edits).length;
  const saving = useMutation({
    mutationFn: () => api.put<Config[]>(at`/topics/${topic}/configs`, toAlterConfigs(edits)),
    onSuccess: (saved) => {
      client.setQueryData(["topic", topic, "configs"], saved);
      notifyDone(`${plural(editCount, "setting")} of ${topic} changed.`);
      setEdits({});
    },
  });
  const shown = matching(configs, search, changedOnly);
  const fixed = shown.filter(({ readOnly }) => readOnly);

  const row = (config: Config) => (
    <ConfigRow
      key={config.name}
      config={config}
      value={shownValue(config, edits)}
      isEdited={config.name in edits}
      onChange={(wanted) => setEdits((before) => edited(before, config, wanted))}
    />
  );

  return (
    <Stack
      component="form"
      aria-label="Settings"
      onSubmit={(event) => {
        event.preventDefault();
        if (editCount > 0) saving.mutate();
      }}
    >
      <Group justify="space-between">
        <TextInput
          aria-label="Search settings"
          placeholder="Search settings"
          data-search
          type="search"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          miw={240}
        />
        <Switch
          label="Only those set for this topic"
          checked={changedOnly}
          onChange={(event) => setChangedOnly(event.currentTarget.checked)}
        />
      </Group>
      {shown.length === 0 && (
        <EmptyState title={changedOnly && search === "" ? "All settings are at their defaults." : "No setting fits."}>
          Search for something else, or show all settings.
        </EmptyState>
      )}
      <VisuallyHidden component="h2">Settings that can be changed</VisuallyHidden>
      {shown.filter(({ readOnly }) => !readOnly).map(row)}
      {fixed.length > 0 && (
        <>
          <Title order={2} size="h5" mt="md">
            Fixed
          </Title>
          <Text size="sm" c="dimmed">
            Known to clients of Kafka, and with nothing to change here.
          </Text>
          {fixed.map(row)}
        </>
      )}
      {saving.error && <ErrorState error={saving.error} />}
      {editCount > 0 && (
        <Paper withBorder shadow="md" p="sm" pos="sticky" bottom={12} style={{ zIndex: 5 }}>
          {/* At the left, because messages come up at the right. */}
          <Group gap="xs">
            <Button type="submit" loading={saving.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={() => setEdits({})}>
              Discard
            </Button>
            <Text size="sm" role="status" ml="xs">
              {plural(editCount, "unsaved change")}
            </Text>
          </Group>
        </Paper>
      )}
    </Stack>
  );
}
