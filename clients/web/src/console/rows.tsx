// Rows of a list that changes while somebody reads it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

/** Rows that are shown at once. */
const ROWS = 50;

/** Tells whether somebody points at rows or is among them: they are to stand still for so long. */
export function holding(hold: (holds: boolean) => void) {
  return {
    onPointerEnter: () => hold(true),
    onPointerLeave: () => hold(false),
    onFocusCapture: () => hold(true),
    onBlurCapture: () => hold(false),
  };
}

/** The first rows of a list, and more when somebody wants them. */
export function Rows<Each>({
  list,
  hold,
  alone = false,
  children,
}: {
  readonly list: readonly Each[];
  readonly hold: (holds: boolean) => void;
  /** Rows begin with what they are about, and not with a time. */
  readonly alone?: boolean;
  /** One of them, as an `li`. */
  readonly children: (each: Each) => ComponentChildren;
}) {
  const rows = useSignal(ROWS);
  return (
    <>
      <ol class={alone ? "rows received alone" : "rows received"} {...holding(hold)}>
        {list.slice(0, rows.value).map(children)}
      </ol>
      {list.length > rows.value && (
        <button type="button" onClick={() => (rows.value += ROWS)}>
          Show {Math.min(ROWS, list.length - rows.value)} more
        </button>
      )}
    </>
  );
}
