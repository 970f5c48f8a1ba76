import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

import { serviceWorker } from "./tools/worker/plugin.js";
import { world } from "./tools/world/plugin.js";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // Relative addresses, so that the pages work behind a proxy that has put the broker at a path.
  base: "./",
  resolve: { alias: { nearcast: here("../typescript/src/browser.ts") } },
  plugins: [world(), serviceWorker()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "embed/pages/dist",
    emptyOutDir: true,
    target: "es2022",
    // What the licences of the libraries inside ask for.
    license: { fileName: "assets/licenses.md" },
    rolldownOptions: { input: { console: here("index.html"), phone: here("phone.html") } },
    // The map library is one piece; it comes after the first paint.
    chunkSizeWarningLimit: 2000,
  },
  worker: { format: "es" },
});
