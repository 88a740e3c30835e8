import { availableParallelism } from "node:os";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The wheel contains the build, so Node is not needed to run the console.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/kafscale/console/static",
    emptyOutDir: true,
    // Inlined assets would be data: URLs, which the content security policy forbids.
    assetsInlineLimit: 0,
    target: "es2022",
  },
  server: { proxy: { "/api": "http://localhost:8080" } },
  test: {
    environment: "happy-dom",
    // Files share their worker's modules, of which the components are most of the time.
    isolate: false,
    maxWorkers: availableParallelism(),
    setupFiles: ["src/test/setup.ts"],
    css: false,
    testTimeout: 60_000,
    restoreMocks: true,
    unstubGlobals: true,
  },
});
