// A value beside its limit, on a scale that ends at the larger of both.

/** `text`: what the limit is, where that is not said beside it. */
export function Gauge({ value, limit, text }: { readonly value: number; readonly limit: number; readonly text?: string }) {
  const most = Math.max(value, limit) * 1.08;
  const part = (of: number): string => `${((100 * of) / (most || 1)).toFixed(1)}%`;
  return (
    <span class={`gauge ${value <= limit ? "good" : "bad"}`} aria-hidden="true">
      <span class="allowed" style={{ width: part(limit) }} />
      <span class="far" style={{ left: part(value) }} />
      <span class="limit" style={{ left: part(limit) }}>
        {text}
      </span>
    </span>
  );
}
