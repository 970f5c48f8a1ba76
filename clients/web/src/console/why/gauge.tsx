// A value beside its limit, on a scale that ends at the larger of both.

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
  const part = (of: number): string => `${((100 * of) / (most || 1)).toFixed(1)}%`;
  return (
    <span class={`gauge ${value <= limit ? "good" : "bad"}${words === undefined ? "" : " told"}`} aria-hidden="true">
      <span class="allowed" style={{ width: part(limit) }} />
      <span class="far" style={{ left: part(value) }}>
        {words !== undefined && <strong>{words[0]}</strong>}
      </span>
      <span class="limit" style={{ left: part(limit) }}>
        {words === undefined ? text?.(limit) : `limit ${words[1]}`}
      </span>
      {text !== undefined && <span class="zero">{text(0)}</span>}
    </span>
  );
}
