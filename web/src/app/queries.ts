import { QueryClient } from "@tanstack/react-query";

import { ApiError } from "../api/client";

/** Only network errors and server errors are retried: they may be temporary. */
function isRetriable(error: Error): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        gcTime: 5 * 60_000,
        refetchOnWindowFocus: true,
        retry: (failures, error) => failures < 2 && isRetriable(error),
        retryDelay: (failures) => 500 * 2 ** failures,
      },
      mutations: { retry: false },
    },
  });
}
