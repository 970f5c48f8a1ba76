// Names of the quarters that a view lies in when it is too close to show the points that they stand at. Each quarter has the part of the view that is
// nearer to its point than to any other, and its name is pinned in the middle of that part.

/** On the screen, in CSS pixels. */
export interface At {
  readonly x: number;
  readonly y: number;
}

export interface Region {
  /** Which of the points it belongs to. */
  readonly of: number;
  /** Places of the screen in it, the ones nearest to its middle first. */
  readonly spots: readonly At[];
  /** Of the view, 0 to 1. */
  readonly part: number;
}

/** The view is looked at so finely. */
const STEP_PX = 32;
/** Smaller parts of the view have no name. */
const LEAST_PART = 0.03;

/** The parts of a view of a size, the largest first; what is farther than `most_px` from every point belongs to none. Costs O(places looked at · points). */
export function regionsOf(points: readonly At[], width: number, height: number, most_px: number): Region[] {
  const spots = new Map<number, At[]>();
  let all = 0;
  for (let y = STEP_PX / 2; y < height; y += STEP_PX) {
    for (let x = STEP_PX / 2; x < width; x += STEP_PX) {
      all += 1;
      const of = nearestOf(points, { x, y }, most_px);
      if (of === undefined) continue;
      const before = spots.get(of);
      if (before === undefined) spots.set(of, [{ x, y }]);
      else before.push({ x, y });
    }
  }
  return [...spots]
    .map(([of, found]): Region => ({ of, spots: fromMiddle(found), part: found.length / all }))
    .filter(({ part }) => part >= LEAST_PART)
    .sort((one, other) => other.part - one.part);
}

/** Which point is nearest to a place, within a distance. */
export function nearestOf(points: readonly At[], { x, y }: At, most_px: number): number | undefined {
  let [best, least]: [number | undefined, number] = [undefined, most_px * most_px];
  for (const [index, point] of points.entries()) {
    const away = (point.x - x) ** 2 + (point.y - y) ** 2;
    if (away < least) [best, least] = [index, away];
  }
  return best;
}

function fromMiddle(spots: readonly At[]): At[] {
  const middle = (of: (at: At) => number): number => spots.reduce((sum, at) => sum + of(at), 0) / spots.length;
  const [x, y] = [middle((at) => at.x), middle((at) => at.y)];
  const away = (at: At): number => Math.hypot(at.x - x, at.y - y);
  return [...spots].sort((one, other) => away(one) - away(other));
}
