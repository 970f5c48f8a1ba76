// The sign that something opens.

import { ChevronDown } from "lucide";
import type { JSX } from "preact";

import { Icon } from "../../shared/icon.js";

/** In the summary of what opens; it is turned where that is open. */
export function FoldSign(): JSX.Element {
  return (
    <span class="fold">
      <Icon of={ChevronDown} size={20} />
    </span>
  );
}
