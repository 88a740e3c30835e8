/** How a table is looked at: what is searched for, by what it is sorted, and which page is shown. */
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

function wholeNumber(text: string | null, otherwise: number): number {
  const number = Number(text);
  return Number.isInteger(number) && number > 0 ? number : otherwise;
}

/** A view that lives in the address, so that reloading, going back and sharing keep it. */
export function useTableView(defaults: Partial<TableView> = {}): [TableView, (view: TableView) => void] {
  const { search, sort, order, page, size } = { ...DEFAULT_VIEW, ...defaults };
  const [words, setWords] = useSearchParams();
  const view = useMemo<TableView>(
    () => ({
      search: words.get("search") ?? search,
      sort: words.get("sort") ?? sort,
      order: words.get("order") === "desc" ? "desc" : words.get("order") === "asc" ? "asc" : order,
      page: wholeNumber(words.get("page"), page),
      size: wholeNumber(words.get("size"), size),
    }),
    [words, search, sort, order, page, size],
  );

  const setView = useCallback(
    (next: TableView) =>
      setWords(
        (before) => {
          const after = new URLSearchParams(before);
          const usual: TableView = { search, sort, order, page, size };
          for (const name of Object.keys(usual) as (keyof TableView)[]) {
            if (next[name] === usual[name]) after.delete(name);
            else after.set(name, String(next[name]));
          }
          return after;
        },
        { replace: true },
      ),
    [setWords, search, sort, order, page, size],
  );
  return [view, setView];
}

export type SortValue = string | number | boolean | null | undefined;

/** Names with numbers in them as people order them; what is not known comes last, either way. */
export function compare(a: SortValue, b: SortValue, order: Order): number {
  const aMissing = a === null || a === undefined;
  const bMissing = b === null || b === undefined;
  if (aMissing || bMissing) return Number(aMissing) - Number(bMissing);
  const direction = order === "asc" ? 1 : -1;
  if (typeof a === "string" && typeof b === "string") return direction * a.localeCompare(b, "en", { numeric: true });
  return direction * (Number(a) - Number(b));
}
