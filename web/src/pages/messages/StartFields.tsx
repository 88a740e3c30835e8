/** The start of the search: newest records, beginning, offset or time. */

import { NativeSelect, NumberInput, TextInput } from "@mantine/core";

import { fromLocalField, toLocalField } from "../../lib/localTime";
import type { MessageQuery, StartKind } from "./query";

const LABELS: Record<StartKind, string> = {
  newest: "Newest first",
  earliest: "From the beginning",
  offset: "From an offset",
  time: "From a time",
};

const HOUR_MS = 3_600_000;

interface Props {
  query: MessageQuery;
  onChange: (changes: Partial<MessageQuery>) => void;
}

export function StartFields({ query, onChange }: Props) {
  return (
    <>
      <NativeSelect
        label="Start"
        data={Object.entries(LABELS).map(([value, label]) => ({ value, label }))}
        value={query.start}
        onChange={(event) => onChange(startingAt(event.currentTarget.value as StartKind, query))}
      />
      {query.start === "offset" && (
        <NumberInput
          label="Offset"
          min={0}
          allowDecimal={false}
          value={query.offset}
          onChange={(offset) => onChange({ offset: Number(offset) || 0 })}
          w={140}
        />
      )}
      {query.start === "time" && (
        <TextInput
          label="Time (local)"
          type="datetime-local"
          step={1}
          value={toLocalField(query.timeMs)}
          onChange={(event) => onChange({ timeMs: fromLocalField(event.currentTarget.value) ?? query.timeMs })}
        />
      )}
    </>
  );
}

function startingAt(start: StartKind, query: MessageQuery): Partial<MessageQuery> {
  if (start === "time" && query.timeMs === 0) return { start, timeMs: Math.floor(Date.now() - HOUR_MS) };
  return { start };
}
