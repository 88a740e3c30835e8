/** Editor of the topic configs. Changes are saved together. */

import { Button, Group, Paper, Stack, Switch, Text, TextInput, Title, VisuallyHidden } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { Config } from "../../api/contract";
import { EmptyState } from "../../components/EmptyState";
import { ErrorState } from "../../components/ErrorState";
import { notifySuccess } from "../../components/notify";
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
      notifySuccess(`${plural(editCount, "config")} of ${topic} changed.`);
      setEdits({});
    },
  });
  const shown = matching(configs, search, changedOnly);
  const readOnlyConfigs = shown.filter(({ readOnly }) => readOnly);

  const row = (config: Config) => (
    <ConfigRow
      key={config.name}
      config={config}
      value={shownValue(config, edits)}
      isEdited={config.name in edits}
      onChange={(value) => setEdits((before) => edited(before, config, value))}
    />
  );

  return (
    <Stack
      component="form"
      aria-label="Topic configs"
      onSubmit={(event) => {
        event.preventDefault();
        if (editCount > 0) saving.mutate();
      }}
    >
      <Group justify="space-between">
        <TextInput
          aria-label="Search configs"
          placeholder="Search configs"
          data-search
          type="search"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          miw={240}
        />
        <Switch
          label="Show only configs set on this topic"
          checked={changedOnly}
          onChange={(event) => setChangedOnly(event.currentTarget.checked)}
        />
      </Group>
      {shown.length === 0 && (
        <EmptyState title={changedOnly && search === "" ? "All configs have their default values." : "No configs match."}>
          Change the search, or show all configs.
        </EmptyState>
      )}
      <VisuallyHidden component="h2">Editable configs</VisuallyHidden>
      {shown.filter(({ readOnly }) => !readOnly).map(row)}
      {readOnlyConfigs.length > 0 && (
        <>
          <Title order={2} size="h5" mt="md">
            Read-only
          </Title>
          <Text size="sm" c="dimmed">
            Kafka configs that have no effect in Kafscale or cannot be changed.
          </Text>
          {readOnlyConfigs.map(row)}
        </>
      )}
      {saving.error && <ErrorState error={saving.error} />}
      {editCount > 0 && (
        <Paper withBorder shadow="md" p="sm" pos="sticky" bottom={12} style={{ zIndex: 5 }}>
          {/* On the left, because notifications appear on the right. */}
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
