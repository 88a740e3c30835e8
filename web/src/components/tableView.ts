/** The view of a table: search text, sort order and page. */
import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

export type Order = "asc" | "desc";

export interface TableView {
  search: string;
  sort: string;
  order: Order;
  page: number;
  size: number;
}

export const DEFAULT_VIEW: TableView = { search: "", sort: "", order: "asc", page: 1, size: 50 };

function wholeNumber(text: string | null, fallback: number): number {
  const number = Number(text);
  return Number.isInteger(number) && number > 0 ? number : fallback;
}

/** A view stored in the URL, so that reload, back and shared links keep it. */
export function useTableView(defaults: Partial<TableView> = {}): [TableView, (view: TableView) => void] {
  const { search, sort, order, page, size } = { ...DEFAULT_VIEW, ...defaults };
  const [params, setParams] = useSearchParams();
  const view = useMemo<TableView>(
    () => ({
      search: params.get("search") ?? search,
      sort: params.get("sort") ?? sort,
      order: params.get("order") === "desc" ? "desc" : params.get("order") === "asc" ? "asc" : order,
      page: wholeNumber(params.get("page"), page),
      size: wholeNumber(params.get("size"), size),
    }),
    [params, search, sort, order, page, size],
  );

  const setView = useCallback(
    (next: TableView) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          const initial: TableView = { search, sort, order, page, size };
          for (const name of Object.keys(initial) as (keyof TableView)[]) {
            if (next[name] === initial[name]) after.delete(name);
            else after.set(name, String(next[name]));
          }
          return after;
        },
        { replace: true },
      ),
    [setParams, search, sort, order, page, size],
  );
  return [view, setView];
}

export type SortValue = string | number | boolean | null | undefined;

/** Numbers in names are compared as numbers; missing values come last in both orders. */
export function compare(a: SortValue, b: SortValue, order: Order): number {
  const aMissing = a === null || a === undefined;
  const bMissing = b === null || b === undefined;
  if (aMissing || bMissing) return Number(aMissing) - Number(bMissing);
  const direction = order === "asc" ? 1 : -1;
  if (typeof a === "string" && typeof b === "string") return direction * a.localeCompare(b, "en", { numeric: true });
  return direction * (Number(a) - Number(b));
}
