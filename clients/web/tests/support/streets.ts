// Streets for brokers of tests.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const WEST = 9.52;
const MIDDLE = 9.53;
const EAST = 9.54;
const SOUTH = 47.14;
const NORTH = 47.145;

/** Two streets side by side with three across, of which the one in the middle is the fastest. */
export const TOWN = { WEST, MIDDLE, EAST, SOUTH, NORTH } as const;

const NODES = [SOUTH, NORTH].flatMap((lat) => [WEST, MIDDLE, EAST].map((lon) => [lat, lon])).map((at, index) => [index + 1, ...at].join());
const EDGES = [
  "1,2,756000,0,primary,50",
  "2,3,756000,0,primary,50",
  "4,5,756000,0,primary,50",
  "5,6,756000,0,primary,50",
  "1,4,556000,0,residential,30",
  "2,5,556000,0,tertiary,50",
  "3,6,556000,0,residential,30",
];

/** Writes the town into a folder of its own. */
export function writeTown(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "nearcast-town-"));
  writeFileSync(join(folder, "nodes.csv"), ["node,lat,lon", ...NODES, ""].join("\n"));
  writeFileSync(join(folder, "edges.csv"), ["from,to,length_mm,oneway,highway,maxspeed", ...EDGES, ""].join("\n"));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Real streets that the project does not carry; absent, said aloud, in a clone that has none beside it. */
export function liechtenstein(): string | undefined {
  for (let at = dirname(fileURLToPath(import.meta.url)); at !== dirname(at); at = dirname(at)) {
    const folder = join(at, "shared/data/streets-liechtenstein");
    if (existsSync(folder)) return folder;
  }
  console.warn("NOT TESTED: no shared/data/streets-liechtenstein beside the project or a folder around it");
  return undefined;
}
