import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: ["tests/support/install.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
  resolve: { alias: { nearcast: new URL("src/node.ts", import.meta.url).pathname } },
});
