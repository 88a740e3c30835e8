import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type createMemoryRouter, RouterProvider } from "react-router";

import { SessionProvider } from "./session";
import { theme } from "./theme";

interface Props {
  router: ReturnType<typeof createMemoryRouter>;
  queryClient: QueryClient;
  env?: "default" | "test";
}

export function App({ router, queryClient, env = "default" }: Props) {
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" env={env}>
      <Notifications position="bottom-right" limit={4} />
      <QueryClientProvider client={queryClient}>
        <SessionProvider>
          <RouterProvider router={router} />
        </SessionProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}
