import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";

import type { TableView } from "./tableView";

interface Props {
  label: string;
  view: TableView;
  onView: (view: TableView) => void;
  /** Debounce time, for tables that the server searches; 0 for none. */
  debounceMs: number;
}

/** Keeps the typed text as local state, because the URL is updated with a delay. */
export function TableSearch({ label, view, onView, debounceMs }: Props) {
  const [text, setText] = useState(view.search);
  const lastSearch = useRef(view.search);
  const search = useDebouncedCallback((next: string) => onView({ ...view, search: next, page: 1 }), debounceMs);

  useEffect(() => {
    // Changed from outside: by a link or the back button.
    if (view.search !== lastSearch.current) setText(view.search);
    lastSearch.current = view.search;
  }, [view.search]);

  function onType(next: string) {
    setText(next);
    lastSearch.current = next;
    if (debounceMs > 0) search(next);
    else onView({ ...view, search: next, page: 1 });
  }

  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={`${label} ( / )`}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => onType(event.currentTarget.value)}
      data-search
      w={{ base: "100%", xs: 300 }}
    />
  );
}
