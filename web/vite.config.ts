import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The wheel carries what is built, so that nobody needs Node to run the console.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/kafscale/console/static",
    emptyOutDir: true,
    // Inlined assets would be data: addresses, which the content security policy refuses.
    assetsInlineLimit: 0,
    target: "es2022",
  },
  server: { proxy: { "/api": "http://localhost:8080" } },
  test: {
    environment: "jsdom",
    setupFiles: ["src/test/setup.ts"],
    css: false,
    testTimeout: 60_000,
    restoreMocks: true,
    unstubGlobals: true,
  },
});
