// Corridors: what lies within a distance of a line, and how wide that is on the map.

import { DEGREE_M, distance_m, type Place, type Plane } from "./plane.js";

/** How wide a corridor is in pixels at zoom 0, where the earth has 512, in the middle of its latitudes. */
export function corridorWidth(plane: Pick<Plane, "world">, line: readonly Place[], radius_m: number): number {
  const [south, north] = line.reduce(([least, most], [, lat]) => [Math.min(least, lat), Math.max(most, lat)], [Infinity, -Infinity]);
  const lat = plane.world === "planar" ? 0 : (south + north) / 2;
  return (2 * radius_m * 512) / (360 * DEGREE_M * Math.max(0.05, Math.cos((lat * Math.PI) / 180)));
}

/** How a place of the globe lies to a line. */
export interface Along {
  /** Metres to the nearest place of the line; infinite where it has none. */
  readonly away_m: number;
  /** Metres from there to the line's end. */
  readonly left_m: number;
}

/**
 * How a place lies to a line of the globe. Pieces are straight in degrees, which of streets' pieces is the same to decimetres; costs O(positions).
 */
export function along(line: readonly Place[], place: Place): Along {
  let [away_m, left_m, behind_m] = [Infinity, 0, 0];
  for (const [index, to] of line.entries()) {
    const from = line[index - 1] ?? to;
    const at = nearestOf(from, to, place);
    const piece_m = distance_m("geodetic", from, to);
    const distance = distance_m("geodetic", place, at);
    if (distance < away_m) [away_m, left_m] = [distance, behind_m + distance_m("geodetic", from, at)];
    behind_m += piece_m;
  }
  return { away_m, left_m: away_m === Infinity ? 0 : behind_m - left_m };
}

/** The place of a piece that is nearest to a place. */
function nearestOf([x1, y1]: Place, [x2, y2]: Place, [x, y]: Place): Place {
  // A degree of longitude is shorter than one of latitude.
  const wide = Math.cos((y * Math.PI) / 180);
  const [dx, dy] = [(x2 - x1) * wide, y2 - y1];
  const long = dx * dx + dy * dy;
  const part = long === 0 ? 0 : Math.min(1, Math.max(0, ((x - x1) * wide * dx + (y - y1) * dy) / long));
  return [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
}

/** What lies within a distance of a line of the globe. It remembers its answers for as long as somebody has the places. */
export class Corridor {
  readonly line: readonly Place[];
  readonly radius_m: number;
  readonly #held = new WeakMap<Place, boolean>();

  constructor(line: readonly Place[], radius_m: number) {
    this.line = line;
    this.radius_m = radius_m;
  }

  holds(place: Place): boolean {
    const held = this.#held.get(place) ?? along(this.line, place).away_m <= this.radius_m;
    this.#held.set(place, held);
    return held;
  }
}
