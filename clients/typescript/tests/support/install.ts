// Before all tests: packs the package and installs it in an empty folder, as a stranger does.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** A folder in which the packed package is installed. */
    readonly installed: string;
  }
}

export default function setup(project: TestProject): () => void {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "nearcast-installed-"));
  // `npm test` has built it already.
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: root, stdio: "pipe" });
  const packed = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  if (packed === undefined) throw new Error("nothing was packed");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", join(folder, packed)], { cwd: folder, stdio: "pipe" });
  project.provide("installed", folder);
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}
