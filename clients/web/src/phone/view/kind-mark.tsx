import type { JSX } from "preact";

import { Icon } from "../../shared/icon.js";
import type { Entry } from "../entry.js";
import { kindOf } from "../kind.js";

/** The icon of an entry's kind, in its colour; a sign of its own for what one is warned of. The title says the same. */
export function KindMark({ entry }: { readonly entry: Entry }): JSX.Element {
  const { icon, letter, colour } = kindOf(entry);
  const background = entry.alarm ? "var(--bad)" : `var(--map-c${colour})`;
  return (
    <span class="kind" aria-hidden="true" style={{ background }}>
      {icon === undefined ? letter : <Icon of={icon} size={20} />}
    </span>
  );
}
