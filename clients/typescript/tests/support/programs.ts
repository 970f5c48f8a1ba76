// Runs programs as a user of the package would: with Node, in the folder in which it is installed.

import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import typescript from "typescript";

/** The JavaScript of a TypeScript program. */
export function transpiled(source: string): string {
  return typescript.transpileModule(source, {
    compilerOptions: { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 },
  }).outputText;
}

/** What a program writes to its output; fails where it does, or takes longer than half a minute. */
export async function output(folder: string, file: string, source: string, environment: Record<string, string> = {}): Promise<string> {
  const own = mkdtempSync(join(folder, "program-"));
  const program = join(own, file);
  writeFileSync(program, source);
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    cwd: own,
    env: { ...process.env, ...environment },
    timeout: 30_000,
  });
  return stdout;
}
