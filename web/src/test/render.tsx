import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import axe from "axe-core";
import type { ReactNode } from "react";
import { createMemoryRouter, MemoryRouter } from "react-router";
import { expect } from "vitest";

import { App } from "../app/App";
import { newQueryClient } from "../app/queries";
import { routes } from "../app/routes";
import { theme } from "../app/theme";

function queryClientWithoutRetries() {
  const client = newQueryClient();
  client.setDefaultOptions({ queries: { ...client.getDefaultOptions().queries, retry: false } });
  return client;
}

/** Renders the whole console at a path; the fake server's session is logged in by default. */
export function renderApp(path: string) {
  const router = createMemoryRouter(routes, { initialEntries: [path] });
  return { router, ...render(<App router={router} queryClient={queryClientWithoutRetries()} env="test" />) };
}

/** Renders one component. */
export function renderPart(part: ReactNode) {
  return render(
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={queryClientWithoutRetries()}>
        <MemoryRouter>{part}</MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

/** Checks with axe, without the rules that need a real layout: the browser tests check colours. */
export async function expectAccessible(container: Element = document.body) {
  const { violations } = await axe.run(container, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}
