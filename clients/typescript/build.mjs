// Writes dist/: the same sources once as ES modules and once as CommonJS, each with its types.

import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

process.chdir(import.meta.dirname);
let tsc;
try {
  tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
} catch {
  console.error("The compiler is not installed: run `npm ci` in clients/typescript first.");
  process.exit(1);
}
rmSync("dist", { recursive: true, force: true });
for (const [format, module, resolution] of [
  ["esm", "NodeNext", "NodeNext"],
  ["cjs", "CommonJS", "Node10"],
]) {
  mkdirSync(`dist/${format}`, { recursive: true });
  writeFileSync(`dist/${format}/package.json`, `${JSON.stringify({ type: format === "esm" ? "module" : "commonjs" })}\n`);
  execFileSync(
    process.execPath,
    [tsc, "-p", "tsconfig.build.json", "--outDir", `dist/${format}`, "--module", module, "--moduleResolution", resolution],
    { stdio: "inherit" },
  );
}
