import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";

import type { TableView } from "./tableView";

interface Props {
  label: string;
  view: TableView;
  onView: (view: TableView) => void;
  /** A server is asked when the typing pauses, not with each letter. */
  pauseMs: number;
}

/** What was typed is kept here: the address, where views may live, follows too slowly to type into. */
export function TableSearch({ label, view, onView, pauseMs }: Props) {
  const [text, setText] = useState(view.search);
  const wanted = useRef(view.search);
  const search = useDebouncedCallback((words: string) => onView({ ...view, search: words, page: 1 }), pauseMs);

  useEffect(() => {
    // Changed by somebody else: a link, or going back.
    if (view.search !== wanted.current) setText(view.search);
    wanted.current = view.search;
  }, [view.search]);

  function typed(words: string) {
    setText(words);
    wanted.current = words;
    if (pauseMs > 0) search(words);
    else onView({ ...view, search: words, page: 1 });
  }

  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={`${label} ( / )`}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => typed(event.currentTarget.value)}
      data-search
      w={{ base: "100%", xs: 300 }}
    />
  );
}
