import { mergeConfig } from "vite";
import { defineConfig } from "vitest/config";

import pages from "./vite.config.js";

export default mergeConfig(
  pages,
  defineConfig({
    test: {
      include: ["tests/**/*.test.ts"],
      testTimeout: 120_000,
      hookTimeout: 120_000,
      // Browsers beside each other on two cores wait for each other.
      fileParallelism: false,
    },
  }),
);
