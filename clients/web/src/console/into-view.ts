// What was asked for is seen, also where the panel has to scroll for it.

import type { RefObject } from "preact";

/** Scrolls to an element once what it shows now is there. */
export function intoView(element: RefObject<HTMLElement | null>): void {
  requestAnimationFrame(() => element.current?.scrollIntoView({ block: "nearest" }));
}
