import { Skeleton, Stack } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ErrorState } from "./ErrorState";

interface Props<T> {
  query: Pick<UseQueryResult<T>, "data" | "error" | "refetch">;
  /** Number of skeleton lines while loading. */
  lines?: number;
  children: (data: T) => ReactNode;
}

/** Renders a query's data, skeleton or error. If a refetch fails, the previous data stays below the error. */
export function Loaded<T>({ query, lines = 4, children }: Props<T>) {
  const error = query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data !== undefined) {
    return (
      <>
        {error}
        {children(query.data)}
      </>
    );
  }
  if (error) return error;
  return (
    <Stack role="status" aria-label="Loading" gap="sm">
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={28} />
      ))}
    </Stack>
  );
}
