// From mark to mark by the arrow keys.

export interface Spot {
  readonly id: string;
  readonly kind: "event" | "client" | "cluster";
  /** In CSS pixels of the map. */
  readonly x: number;
  readonly y: number;
  /** Of a cluster. */
  readonly count?: number;
}

const WAYS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};
/** Marks closer than this lie on each other: one is not to the right of the other. */
const APART_PX = 3;

export function isWay(key: string): boolean {
  return key in WAYS;
}

/** The mark that is next in the direction of an arrow key: near, and rather straight on than aside. */
export function nextOf(spots: readonly Spot[], from: { readonly x: number; readonly y: number }, key: string): Spot | undefined {
  const [right, down] = WAYS[key] ?? [0, 0];
  let [best, least]: [Spot | undefined, number] = [undefined, Infinity];
  for (const spot of spots) {
    const [x, y] = [spot.x - from.x, spot.y - from.y];
    const along = x * right + y * down;
    const aside = Math.abs(x * down - y * right);
    if (along < APART_PX || aside > along * 1.5) continue;
    const far = along + 2 * aside;
    if (far < least) [best, least] = [spot, far];
  }
  return best;
}

/** The mark that is nearest to a place of the map. */
export function nearestOf(spots: readonly Spot[], { x, y }: { readonly x: number; readonly y: number }): Spot | undefined {
  let [best, least]: [Spot | undefined, number] = [undefined, Infinity];
  for (const spot of spots) {
    const far = Math.hypot(spot.x - x, spot.y - y);
    if (far < least) [best, least] = [spot, far];
  }
  return best;
}
