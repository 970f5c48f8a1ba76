// Coasts without corners. The outline is coarse, for it has to be small; where people live it is looked at closely.

import type { Position } from "geojson";

import type { CityRow } from "./data.js";

/** Lines are made smooth around cities of this size, in thousands, in a cell of this size, in degrees, and its neighbours. */
const THOUSANDS = 200;
const CELL = 0.4;
/** A corner is rounded from this distance on, and with places this far apart, in degrees. */
const REACH = 0.03;
const PIECE = 0.0025;
const PIECES_MAX = 8;

type IsNear = (place: Position) => boolean;

/** Says whether a place is near to a city. */
export function nearCities(cities: readonly CityRow[]): IsNear {
  const cell = (degrees: number): number => Math.floor(degrees / CELL);
  const key = (column: number, row: number): number => column * 1000 + row;
  const cells = new Set<number>();
  for (const [, lon, lat, thousands] of cities) {
    if (thousands < THOUSANDS) continue;
    for (const east of [-1, 0, 1]) for (const north of [-1, 0, 1]) cells.add(key(cell(lon) + east, cell(lat) + north));
  }
  return ([lon = 0, lat = 0]) => cells.has(key(cell(lon), cell(lat)));
}

/** A ring or a line with its corners rounded where it is near to a city: each becomes a parabola between places on the two lines that meet there. */
export function smooth(line: readonly Position[], isNear: IsNear): Position[] {
  const [first, last] = [line[0], line.at(-1)];
  if (first === undefined || last === undefined || line.length < 3) return [...line];
  const isRing = first[0] === last[0] && first[1] === last[1];
  const drawn: Position[] = [];
  for (const [index, corner] of line.entries()) {
    const before = line[index - 1] ?? (isRing ? line[line.length - 2] : undefined);
    // A ring's last corner is its first.
    if (isRing && index === line.length - 1) break;
    const after = line[index + 1];
    if (before === undefined || after === undefined || !isNear(corner)) drawn.push(corner);
    else drawn.push(...rounded(corner, toward(corner, before), toward(corner, after)));
  }
  const [begun] = drawn;
  return isRing && begun !== undefined ? [...drawn, begun] : drawn;
}

/** Half the way to the next corner, where that is not far. */
function toward([x1 = 0, y1 = 0]: Position, [x2 = 0, y2 = 0]: Position): [number, number] {
  const long = Math.hypot(x2 - x1, y2 - y1);
  const part = long === 0 ? 0 : Math.min(0.5, REACH / long);
  return [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
}

function rounded([x = 0, y = 0]: Position, [x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number]): Position[] {
  const long = Math.hypot(x - x1, y - y1) + Math.hypot(x2 - x, y2 - y);
  const pieces = Math.min(PIECES_MAX, Math.max(1, Math.ceil(long / PIECE)));
  return Array.from({ length: pieces + 1 }, (_, piece) => {
    const [b, a] = [piece / pieces, 1 - piece / pieces];
    return [a * a * x1 + 2 * a * b * x + b * b * x2, a * a * y1 + 2 * a * b * y + b * b * y2];
  });
}
