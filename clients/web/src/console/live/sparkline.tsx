import { HISTORY } from "./rates.js";

const WIDTH = 120;
const HEIGHT = 24;

/** A line of the newest values, which comes in from the right. */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...values);
  const step = WIDTH / (HISTORY - 1);
  const points = values.map((value, index) => {
    const x = WIDTH - (values.length - 1 - index) * step;
    return `${x.toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1)}`;
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.join(" ")} fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" />
    </svg>
  );
}
