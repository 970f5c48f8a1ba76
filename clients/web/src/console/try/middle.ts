import { useSignal, useSignalEffect, type Signal } from "@preact/signals";

import type { Place } from "../../shared/map/plane.js";
import { useConsole } from "../context.js";

/** Places begin in the middle of the map. A page that was opened here has no map at first: they follow it until they are `chosen`. */
export function useMiddle(begin: (middle: Place) => void): { readonly chosen: Signal<boolean> } {
  const console = useConsole();
  const { view } = console;
  const chosen = useSignal(view.peek() !== undefined);
  useSignalEffect(() => {
    if (view.value === undefined || chosen.peek()) return;
    const follow = (): void => {
      if (!chosen.peek()) begin(console.middle());
    };
    follow();
    view.value.onMoved(follow);
  });
  return { chosen };
}
