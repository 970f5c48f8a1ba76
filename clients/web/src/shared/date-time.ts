// Times of the day and dates as the person's own country writes them.

/** `18:03`, as the person's own country writes it, and of another day with the day. */
export function clockTime(unix_ms: number): string {
  const [time, now] = [new Date(unix_ms), new Date()];
  const clock = { hour: "2-digit", minute: "2-digit" } as const;
  if (time.toDateString() === now.toDateString()) return time.toLocaleTimeString([], clock);
  return time.toLocaleString([], { day: "numeric", month: "short", ...clock });
}

/** `1 Mar 2026, 18:03`, as the person's own country writes it, and of today the time alone. */
export function dateTime(unix_ms: number): string {
  if (new Date(unix_ms).toDateString() === new Date().toDateString()) return clockTime(unix_ms);
  return new Date(unix_ms).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
