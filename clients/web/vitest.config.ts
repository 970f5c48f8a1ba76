import { mergeConfig } from "vite";
import { defineConfig } from "vitest/config";

import pages from "./vite.config.js";

export default mergeConfig(
  pages,
  defineConfig({
    test: {
      include: ["tests/**/*.test.ts"],
      testTimeout: 240_000,
      hookTimeout: 240_000,
      // A second, which is the default, is not much for a page on a machine that builds something.
      expect: { poll: { timeout: 60_000 } },
      // On a machine that others use too, once more; the summary tells which tests took two.
      retry: process.env["CI"] === undefined ? 0 : 1,
      // One browser leaves a third of two cores idle; more than two would wait for each other.
      maxWorkers: 2,
    },
  }),
);
