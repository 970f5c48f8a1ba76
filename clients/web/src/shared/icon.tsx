// Icons of Lucide (ISC), in the colour of the text that they stand beside.

import { h } from "preact";
import type { IconNode } from "lucide";

/** An icon says nothing to a screen reader: words stand beside it, or its button has a label. */
export function Icon({ of, size = 16, filled = false }: { readonly of: IconNode; readonly size?: number; readonly filled?: boolean }) {
  return (
    <svg
      class="icon-line"
      aria-hidden="true"
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill={filled ? "currentColor" : "none"}
      stroke="currentColor"
      stroke-width={2}
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      {of.map(([tag, attributes], index) => h(tag, { ...attributes, key: index }))}
    </svg>
  );
}
