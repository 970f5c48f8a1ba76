import { readFileSync } from "node:fs";

const folder = new URL("../../../contract/vectors/", import.meta.url);

/** Reads a file of the contract's vectors. */
export function vectors(file: string): unknown {
  return JSON.parse(readFileSync(new URL(file, folder), "utf8"));
}
