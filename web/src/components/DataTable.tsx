/**
 * A table with sorting, search and pagination, in the browser or by the server.
 *
 * Without `remote`, `rows` are all rows, and the table sorts, searches and paginates them. With `remote`, `rows` are
 * one page that the server has sorted and searched; `onView` is called when the user requests another view.
 */
import { ActionIcon, Group, Paper, Table, VisuallyHidden } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { Fragment, type KeyboardEvent, type ReactNode, useMemo, useState } from "react";

import classes from "./DataTable.module.css";
import { EmptyState } from "./EmptyState";
import { SortableHeader } from "./SortableHeader";
import { TablePagination } from "./TablePagination";
import { TableSearch } from "./TableSearch";
import { compare, DEFAULT_VIEW, type SortValue, type TableView } from "./tableView";

export interface Column<Row> {
  /** Also the value of the view's `sort`. */
  key: string;
  header: string;
  /** For columns without a visible header, such as buttons. */
  isHeaderHidden?: boolean;
  cell: (row: Row) => ReactNode;
  /** Sort key; with `remote`, any function makes the column sortable. */
  sortBy?: (row: Row) => SortValue;
  align?: "right";
  width?: number | string;
}

export interface Remote {
  total: number;
  view: TableView;
  onView: (view: TableView) => void;
}

interface Props<Row> {
  /** Accessible name of the table: "Brokers". */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string | number;
  /** The searched text of a row; with `remote`, any function shows the search field. */
  searchText?: (row: Row) => string;
  searchLabel?: string;
  initial?: Partial<TableView>;
  remote?: Remote;
  /** Shown instead of the table if there are no rows. */
  empty?: ReactNode;
  /** Controls next to the search field. */
  tools?: ReactNode;
  /** Details of a row, shown below it when expanded. */
  expand?: (row: Row) => ReactNode;
  minWidth?: number;
  /** Without a border, for a table inside a Panel. */
  plain?: boolean;
}

/** The arrow keys move the focus to the first link or button of the next or previous row. */
function moveFocusByArrows(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (!(event.target instanceof HTMLElement) || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const targets = [...event.currentTarget.querySelectorAll<HTMLElement>("tr[data-row]")]
    .map((row) => row.querySelector<HTMLElement>("a, button"))
    .filter((target) => target !== null);
  const current = targets.findIndex((target) => target.closest("tr")?.contains(event.target as Node));
  const next = targets[current + (event.key === "ArrowDown" ? 1 : -1)];
  if (current < 0 || !next) return;
  event.preventDefault();
  next.focus();
}

function filterAndSort<Row>(rows: Row[], columns: Column<Row>[], view: TableView, searchText?: (row: Row) => string): Row[] {
  const search = view.search.trim().toLowerCase();
  const matching = search && searchText ? rows.filter((row) => searchText(row).toLowerCase().includes(search)) : rows;
  const sortBy = columns.find(({ key }) => key === view.sort)?.sortBy;
  return sortBy ? [...matching].sort((a, b) => compare(sortBy(a), sortBy(b), view.order)) : matching;
}

export function DataTable<Row>(props: Props<Row>) {
  const { label, columns, rows, searchText, remote, empty, tools, minWidth = 640, plain } = props;
  const [ownView, setOwnView] = useState<TableView>({ ...DEFAULT_VIEW, ...props.initial });
  const view = remote?.view ?? ownView;
  const setView = remote?.onView ?? setOwnView;
  const sorted = useMemo(() => (remote ? rows : filterAndSort(rows, columns, view, searchText)), [remote, rows, columns, view, searchText]);
  const total = remote?.total ?? sorted.length;
  // The last page may be gone if rows were removed.
  const page = Math.min(view.page, Math.max(1, Math.ceil(total / view.size)));
  const shown = remote ? sorted : sorted.slice((page - 1) * view.size, page * view.size);
  const isEmpty = shown.length === 0 && !view.search;

  const body = (
    <>
      {(searchText || tools) && (
        <Group mb="sm" gap="sm" justify="space-between">
          {searchText ? <TableSearch label={props.searchLabel ?? `Search ${label.toLowerCase()}`} view={view} onView={setView} debounceMs={remote ? 250 : 0} /> : <span />}
          {tools}
        </Group>
      )}
      {isEmpty ? (
        (empty ?? <EmptyState title="No data yet." />)
      ) : (
        <>
          <Table.ScrollContainer minWidth={minWidth}>
            <Table className={classes.table} aria-label={label} verticalSpacing="sm" highlightOnHover>
              <Table.Thead className={classes.head}>
                <Table.Tr>
                  {props.expand && (
                    <Table.Th w={44}>
                      <VisuallyHidden>More</VisuallyHidden>
                    </Table.Th>
                  )}
                  {columns.map((column) => (
                    <SortableHeader key={column.key} column={column} view={view} onView={setView} />
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody onKeyDown={moveFocusByArrows}>
                {shown.map((row) => (
                  <Row key={props.rowKey(row)} row={row} columns={columns} expand={props.expand} />
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          {shown.length === 0 && <EmptyState title={`Nothing matches “${view.search}”.`}>Change or clear the search.</EmptyState>}
          <TablePagination total={total} page={page} view={view} onView={setView} />
        </>
      )}
    </>
  );
  return plain ? (
    <div>{body}</div>
  ) : (
    <Paper withBorder p="md">
      {body}
    </Paper>
  );
}

interface RowProps<Row> {
  row: Row;
  columns: Column<Row>[];
  expand?: (row: Row) => ReactNode;
}

function Row<Row>({ row, columns, expand }: RowProps<Row>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Fragment>
      <Table.Tr data-row>
        {expand && (
          <Table.Td>
            <ActionIcon variant="subtle" color="gray" aria-label={isOpen ? "Show less" : "Show more"} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen ? <IconChevronDown size={17} /> : <IconChevronRight size={17} />}
            </ActionIcon>
          </Table.Td>
        )}
        {columns.map((column) => (
          <Table.Td key={column.key} className={column.align === "right" ? classes.right : undefined}>
            {column.cell(row)}
          </Table.Td>
        ))}
      </Table.Tr>
      {expand && isOpen && (
        <Table.Tr className={classes.expanded}>
          <Table.Td colSpan={columns.length + 1}>{expand(row)}</Table.Td>
        </Table.Tr>
      )}
    </Fragment>
  );
}
