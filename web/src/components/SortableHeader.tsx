import { Table, VisuallyHidden } from "@mantine/core";
import { IconArrowDown, IconArrowsSort, IconArrowUp } from "@tabler/icons-react";

import type { Column } from "./DataTable";
import classes from "./DataTable.module.css";
import type { Order, TableView } from "./tableView";

interface Props<Row> {
  column: Column<Row>;
  view: TableView;
  onView: (view: TableView) => void;
}

const ARIA_SORT = { asc: "ascending", desc: "descending" } as const;

/** A column header: a click sorts by the column, another click reverses the order. Numbers sort descending first. */
export function SortableHeader<Row>({ column, view, onView }: Props<Row>) {
  const isSorted = view.sort === column.key;
  const className = column.align === "right" ? classes.right : undefined;
  if (!column.sortBy) {
    return (
      <Table.Th w={column.width} className={className}>
        {column.isHeaderHidden ? <VisuallyHidden>{column.header}</VisuallyHidden> : column.header}
      </Table.Th>
    );
  }
  const initialOrder: Order = column.align === "right" ? "desc" : "asc";
  const reversedOrder: Order = view.order === "asc" ? "desc" : "asc";
  const Icon = isSorted ? (view.order === "asc" ? IconArrowUp : IconArrowDown) : IconArrowsSort;
  return (
    <Table.Th w={column.width} className={className} aria-sort={isSorted ? ARIA_SORT[view.order] : "none"}>
      <button type="button" className={classes.sort} onClick={() => onView({ ...view, sort: column.key, order: isSorted ? reversedOrder : initialOrder, page: 1 })}>
        {column.header}
        <Icon size={14} aria-hidden opacity={isSorted ? 1 : 0.45} />
      </button>
    </Table.Th>
  );
}
