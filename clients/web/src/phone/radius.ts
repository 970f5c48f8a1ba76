// The radius slider: logarithmic, since ten metres matter at fifty and not at ten thousand.

export const RADIUS_MIN_M = 50;
export const RADIUS_MAX_M = 20_000;
/** Positions of the slider, from 0. */
export const STEPS = 100;

/** The radius at a position of the slider, as a number that people would say. */
export function radiusAt(step: number): number {
  const radius_m = RADIUS_MIN_M * (RADIUS_MAX_M / RADIUS_MIN_M) ** (step / STEPS);
  const fine = Math.max(1, 10 ** Math.floor(Math.log10(radius_m) + 1e-9) / 20);
  return Math.round(radius_m / fine) * fine;
}

/** The position of the slider that is nearest to a radius. */
export function stepOf(radius_m: number): number {
  const step = (STEPS * Math.log(radius_m / RADIUS_MIN_M)) / Math.log(RADIUS_MAX_M / RADIUS_MIN_M);
  return Math.min(STEPS, Math.max(0, Math.round(step)));
}
