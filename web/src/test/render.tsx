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

function impatient() {
  const client = newQueryClient();
  client.setDefaultOptions({ queries: { ...client.getDefaultOptions().queries, retry: false } });
  return client;
}

/** The whole console, at an address, as somebody who is logged in (unless the server says otherwise). */
export function renderApp(path: string) {
  const router = createMemoryRouter(routes, { initialEntries: [path] });
  return { router, ...render(<App router={router} queryClient={impatient()} env="test" />) };
}

/** One component by itself. */
export function renderPart(part: ReactNode) {
  return render(
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={impatient()}>
        <MemoryRouter>{part}</MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

/** What axe finds wrong, apart from what needs real layout: colours are looked at in a browser. */
export async function expectAccessible(container: Element = document.body) {
  const { violations } = await axe.run(container, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}
