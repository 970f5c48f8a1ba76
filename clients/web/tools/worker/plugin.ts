// Builds the phone page's service worker behind everything else, for it has to name the page's files. It is one script without imports, since not every
// browser takes modules as service workers.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build, type Plugin, type Rolldown } from "vite";

const SOURCE = fileURLToPath(new URL("../../src/phone/worker/worker.ts", import.meta.url));

export function serviceWorker(): Plugin {
  let publicDir = "";
  return {
    name: "service worker",
    apply: "build",
    configResolved: (config) => void (publicDir = config.publicDir),
    async writeBundle({ dir = "" }, bundle) {
      const files = [...phoneFiles(bundle), ...publicFiles(publicDir)].sort();
      const sum = createHash("sha256");
      for (const file of files) sum.update(`${file}\0`).update(readFileSync(join(dir, file)));
      // The broker has the page at an address of its own.
      const paths = files.map((file) => (file === "phone.html" ? "phone" : file));
      await build({
        configFile: false,
        logLevel: "warn",
        publicDir: false,
        define: { FILES: JSON.stringify(paths), VERSION: JSON.stringify(sum.digest("hex").slice(0, 16)) },
        build: {
          outDir: dir,
          emptyOutDir: false,
          target: "es2022",
          lib: { entry: SOURCE, formats: ["iife"], name: "worker", fileName: () => "phone-worker.js" },
        },
      });
    },
  };
}

/** All files but those that the console alone loads. */
function phoneFiles(bundle: Rolldown.OutputBundle): string[] {
  const [phone, console] = [reached(bundle, "phone"), reached(bundle, "console")];
  return Object.keys(bundle).filter((file) => (phone.has(file) || !console.has(file)) && !/(^|\/)(index\.html|licenses\.md)$/.test(file));
}

/** The files that an entry loads, now or later. */
function reached(bundle: Rolldown.OutputBundle, entry: string): Set<string> {
  const files = new Set<string>();
  const visit = (file: string): void => {
    const chunk = bundle[file];
    if (chunk === undefined || files.has(file)) return;
    files.add(file);
    if (chunk.type === "asset") return;
    const { importedCss, importedAssets } = chunk.viteMetadata ?? {};
    for (const next of [...chunk.imports, ...chunk.dynamicImports, ...(importedCss ?? []), ...(importedAssets ?? [])]) visit(next);
  };
  for (const [file, chunk] of Object.entries(bundle)) if (chunk.type === "chunk" && chunk.isEntry && chunk.name === entry) visit(file);
  return files;
}

/** Files that are copied as they are. */
function publicFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}
