/**
 * Rows in a table: sorted, searched and in pages, here or by the server.
 *
 * Without `remote` it has all rows and does everything itself; with `remote` it shows one page that the
 * server has sorted and searched, and says what is wanted next.
 */
import { ActionIcon, Group, Paper, Table, VisuallyHidden } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { Fragment, type KeyboardEvent, type ReactNode, useMemo, useState } from "react";

import classes from "./DataTable.module.css";
import { EmptyState } from "./EmptyState";
import { SortHead } from "./SortHead";
import { TableFoot } from "./TableFoot";
import { TableSearch } from "./TableSearch";
import { compare, DEFAULT_VIEW, type SortValue, type TableView } from "./tableView";

export interface Column<Row> {
  /** Also what `sort` of the view says. */
  key: string;
  header: string;
  /** Where the cells speak for themselves: buttons. */
  isHeaderHidden?: boolean;
  cell: (row: Row) => ReactNode;
  /** What to sort by; with `remote`, any function makes the column sortable. */
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
  /** What the rows are, for readers of screens: "Brokers". */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string | number;
  /** What of a row is searched; with `remote`, any function shows the search field. */
  searchText?: (row: Row) => string;
  searchLabel?: string;
  initial?: Partial<TableView>;
  remote?: Remote;
  /** In the place of rows, when there are none at all. */
  empty?: ReactNode;
  /** Beside the search field. */
  tools?: ReactNode;
  /** More of a row, below it, on demand. */
  expand?: (row: Row) => ReactNode;
  minWidth?: number;
  /** Without a frame, for a table inside of a Panel. */
  plain?: boolean;
}

/** Up and down go from row to row, through the first thing of each that takes the focus. */
function walkRows(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (!(event.target instanceof HTMLElement) || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>("tr[data-row]")]
    .map((row) => row.querySelector<HTMLElement>("a, button"))
    .filter((stop) => stop !== null);
  const here = stops.findIndex((stop) => stop.closest("tr")?.contains(event.target as Node));
  const next = stops[here + (event.key === "ArrowDown" ? 1 : -1)];
  if (here < 0 || !next) return;
  event.preventDefault();
  next.focus();
}

function arrange<Row>(rows: Row[], columns: Column<Row>[], view: TableView, searchText?: (row: Row) => string): Row[] {
  const wanted = view.search.trim().toLowerCase();
  const found = wanted && searchText ? rows.filter((row) => searchText(row).toLowerCase().includes(wanted)) : rows;
  const sortBy = columns.find(({ key }) => key === view.sort)?.sortBy;
  return sortBy ? [...found].sort((a, b) => compare(sortBy(a), sortBy(b), view.order)) : found;
}

export function DataTable<Row>(props: Props<Row>) {
  const { label, columns, rows, searchText, remote, empty, tools, minWidth = 640, plain } = props;
  const [ownView, setOwnView] = useState<TableView>({ ...DEFAULT_VIEW, ...props.initial });
  const view = remote?.view ?? ownView;
  const setView = remote?.onView ?? setOwnView;
  const arranged = useMemo(() => (remote ? rows : arrange(rows, columns, view, searchText)), [remote, rows, columns, view, searchText]);
  const total = remote?.total ?? arranged.length;
  // Rows that went away may have taken the last page with them.
  const page = Math.min(view.page, Math.max(1, Math.ceil(total / view.size)));
  const shown = remote ? arranged : arranged.slice((page - 1) * view.size, page * view.size);
  const hasNothing = shown.length === 0 && !view.search;

  const body = (
    <>
      {(searchText || tools) && (
        <Group mb="sm" gap="sm" justify="space-between">
          {searchText ? <TableSearch label={props.searchLabel ?? `Search ${label.toLowerCase()}`} view={view} onView={setView} pauseMs={remote ? 250 : 0} /> : <span />}
          {tools}
        </Group>
      )}
      {hasNothing ? (
        (empty ?? <EmptyState title="There is nothing here yet." />)
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
                    <SortHead key={column.key} column={column} view={view} onView={setView} />
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody onKeyDown={walkRows}>
                {shown.map((row) => (
                  <Row key={props.rowKey(row)} row={row} columns={columns} expand={props.expand} />
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          {shown.length === 0 && <EmptyState title={`Nothing matches “${view.search}”.`}>Search for something else, or clear the field.</EmptyState>}
          <TableFoot total={total} page={page} view={view} onView={setView} />
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
