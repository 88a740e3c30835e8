import { Group, NativeSelect, Pagination, Text } from "@mantine/core";

import { count } from "../lib/format";
import type { TableView } from "./tableView";

const SIZES = [25, 50, 100, 200];

interface Props {
  total: number;
  page: number;
  view: TableView;
  onView: (view: TableView) => void;
}

/** Page controls; hidden if all rows fit on the smallest page. */
export function TablePagination({ total, page, view, onView }: Props) {
  const smallest = Math.min(view.size, ...SIZES);
  if (total <= smallest) return null;
  const first = (page - 1) * view.size + 1;
  const last = Math.min(total, page * view.size);
  const sizes = [...new Set([...SIZES, view.size])].sort((a, b) => a - b);
  return (
    <Group justify="space-between" mt="sm" gap="sm">
      <Text size="sm" c="dimmed" role="status">
        {count(first)}–{count(last)} of {count(total)}
      </Text>
      <Pagination
        total={Math.max(1, Math.ceil(total / view.size))}
        value={page}
        onChange={(next) => onView({ ...view, page: next })}
        size="sm"
        siblings={1}
        getControlProps={(control) => ({ "aria-label": `${control} page` })}
        getItemProps={(number) => ({ "aria-label": `page ${number}` })}
      />
      <NativeSelect
        aria-label="Rows per page"
        size="xs"
        data={sizes.map((size) => ({ value: String(size), label: `${size} rows` }))}
        value={String(view.size)}
        onChange={(event) => onView({ ...view, size: Number(event.currentTarget.value), page: 1 })}
      />
    </Group>
  );
}
