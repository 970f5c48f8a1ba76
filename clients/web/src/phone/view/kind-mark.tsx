import type { JSX } from "preact";

import { Icon } from "../../shared/icon.js";
import type { Entry } from "../entry.js";
import { kindOf } from "../kind.js";

/** The icon of an entry's kind, in its colour, and an outline for what somebody has already; a sign of its own for what one is warned of. The title says the same. */
export function KindMark({ entry, isMany = false }: { readonly entry: Entry; readonly isMany?: boolean }): JSX.Element {
  const { icon, letter, colour, taken } = kindOf(entry);
  const isOutline = taken && !entry.alarm && !isMany;
  const paint = entry.alarm ? "var(--bad)" : `var(--map-c${colour})`;
  return (
    <span class={isOutline ? "kind taken" : "kind"} aria-hidden="true" style={{ "--paint": paint }}>
      {icon === undefined ? letter : <Icon of={icon} size={20} />}
    </span>
  );
}
