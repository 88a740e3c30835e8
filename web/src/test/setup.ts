/** Fakes of browser APIs that happy-dom lacks. */
import "@testing-library/jest-dom/vitest";
import "./canvas";

import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// Generous, for machines under load.
configure({ asyncUtilTimeout: 10_000 });

class FakeResizeObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}

window.matchMedia = (query) =>
  ({ matches: false, media: query, addEventListener() {}, removeEventListener() {}, addListener() {}, removeListener() {} }) as unknown as MediaQueryList;
window.ResizeObserver = FakeResizeObserver as unknown as typeof ResizeObserver;
window.scrollTo = () => {};
HTMLElement.prototype.scrollIntoView = () => {};
// Charts draw nothing in an element of size 0.
HTMLElement.prototype.getBoundingClientRect = () => new DOMRect(0, 0, 800, 600);

afterEach(() => {
  cleanup();
  notifications.clean();
  localStorage.clear();
});
