// Marks that would lie on each other are moved apart a little, so that each is seen and can be touched.

/** A place on the screen, in pixels; what is `fixed` stays where it is. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly fixed?: boolean;
}

const ROUNDS = 24;
/** Those at one place set out in directions that differ from one to the next, so that many become a flower and not a row. */
const TURN = 2.4;
const NUDGE = 0.5;

/** A circle that spots stay in. */
export interface Within {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

/**
 * Where spots stand once each two of them are `least` apart, or as far as some rounds bring them, and within a circle, also those that are fixed. Costs
 * O(spots²) a round.
 */
export function spread(spots: readonly Spot[], least: number, within?: Within): { x: number; y: number }[] {
  const taken = new Set<string>();
  const placed = spots.map(({ x, y, fixed = false }, at) => {
    const isTaken = taken.has(`${x} ${y}`);
    taken.add(`${x} ${y}`);
    return isTaken && !fixed ? { x: x + NUDGE * Math.cos(TURN * at), y: y + NUDGE * Math.sin(TURN * at) } : { x, y };
  });
  for (const spot of placed) bringIn(spot, within);
  for (let round = 0; round < ROUNDS; round++) {
    let moved = false;
    for (const [at, one] of placed.entries()) {
      for (const [more, other] of placed.slice(at + 1).entries()) {
        const to = at + 1 + more;
        const [dx, dy] = [other.x - one.x, other.y - one.y];
        const away = Math.hypot(dx, dy);
        const [isFixed, otherIsFixed] = [spots[at]?.fixed === true, spots[to]?.fixed === true];
        if (away >= least - 0.01 || away === 0 || (isFixed && otherIsFixed)) continue;
        const lacks = least - away;
        const [own, its] = isFixed ? [0, 1] : otherIsFixed ? [1, 0] : [0.5, 0.5];
        one.x -= (dx / away) * lacks * own;
        one.y -= (dy / away) * lacks * own;
        other.x += (dx / away) * lacks * its;
        other.y += (dy / away) * lacks * its;
        if (!isFixed) bringIn(one, within);
        if (!otherIsFixed) bringIn(other, within);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return placed;
}

/** Brings a spot into the circle. */
function bringIn(spot: { x: number; y: number }, within: Within | undefined): void {
  if (within === undefined) return;
  const [dx, dy] = [spot.x - within.x, spot.y - within.y];
  const away = Math.hypot(dx, dy);
  if (away <= within.radius || away === 0) return;
  spot.x = within.x + (dx / away) * within.radius;
  spot.y = within.y + (dy / away) * within.radius;
}
