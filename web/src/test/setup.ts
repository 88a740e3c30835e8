/** What browsers have and jsdom does not. */
import "@testing-library/jest-dom/vitest";
import "./canvas";

import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// A crowded machine takes its time; what never comes still fails.
configure({ asyncUtilTimeout: 10_000 });

class NoResizes {
  observe() {}
  unobserve() {}
  disconnect() {}
}

window.matchMedia = (query) =>
  ({ matches: false, media: query, addEventListener() {}, removeEventListener() {}, addListener() {}, removeListener() {} }) as unknown as MediaQueryList;
window.ResizeObserver = NoResizes as unknown as typeof ResizeObserver;
window.scrollTo = () => {};
HTMLElement.prototype.scrollIntoView = () => {};
// Charts ask how large they are, and draw nothing in a room without any size.
HTMLElement.prototype.getBoundingClientRect = () => new DOMRect(0, 0, 800, 600);

afterEach(() => {
  cleanup();
  notifications.clean();
  localStorage.clear();
});
