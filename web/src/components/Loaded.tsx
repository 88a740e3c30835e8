import { Skeleton, Stack } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ErrorState } from "./ErrorState";

interface Props<T> {
  query: Pick<UseQueryResult<T>, "data" | "error" | "refetch">;
  /** How many grey lines stand in until it is there. */
  lines?: number;
  children: (data: T) => ReactNode;
}

/** What was asked for, in each of its states. What was there before stays while asking again fails, with the error above it. */
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
