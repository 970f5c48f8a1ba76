// The time that ages are counted to. It stands still while nobody looks.

import { computed, signal } from "@preact/signals";

const STEP_MS = 1000;

export const now_ms = signal(Date.now());
/** The same in steps of ten seconds, for what is long. */
export const slowNow_ms = computed(() => Math.floor(now_ms.value / 10_000) * 10_000);

const step = (): void => {
  if (!document.hidden) now_ms.value = Date.now();
};
setInterval(step, STEP_MS);
document.addEventListener("visibilitychange", step);
