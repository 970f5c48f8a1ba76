// A value beside its limit, on a scale that ends at the larger of both.

/** In hundredths of the scale. */
const NEAR_END = 20;

/** `words`: what both are, with their unit, where that is not said beside it. `text`: a number of the scale with its unit. */
export function Gauge({
  value,
  limit,
  words,
  text,
}: {
  readonly value: number;
  readonly limit: number;
  readonly words?: readonly [value: string, limit: string];
  readonly text?: (value: number) => string;
}) {
  const most = Math.max(value, limit) * 1.08;
  const percent = (of: number): number => (100 * of) / (most || 1);
  const part = (of: number): string => `${percent(of).toFixed(1)}%`;
  // Words near an end of the scale stand on its inner side, so that they are not cut.
  const side = (of: number): string => (percent(of) < NEAR_END ? " first" : percent(of) > 100 - NEAR_END ? " last" : "");
  return (
    <span class={`gauge ${value <= limit ? "good" : "bad"}${words === undefined ? "" : " told"}`} aria-hidden="true">
      <span class="allowed" style={{ width: part(limit) }} />
      <span class={`far${side(value)}`} style={{ left: part(value) }}>
        {words !== undefined && <strong>{words[0]}</strong>}
      </span>
      <span class={`limit${side(limit)}`} style={{ left: part(limit) }}>
        {words === undefined ? text?.(limit) : `limit ${words[1]}`}
      </span>
      {text !== undefined && percent(limit) >= NEAR_END && <span class="zero">{text(0)}</span>}
    </span>
  );
}
