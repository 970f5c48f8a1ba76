// What a place is near to, as the map names it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Place } from "../../shared/map/plane.js";
import { useConsole } from "../context.js";

/** A name that is farther away does not say where something is. */
const NEAR_M = 6000;

/** The quarter or the city whose name is nearest to a place; absent where none is near, and until the map is there. */
export function useNear([x, y]: Place): string | undefined {
  const base = useConsole().view.value?.base;
  const name = useSignal<string | undefined>(undefined);
  useEffect(() => {
    let isOver = false;
    void base?.near([x, y], NEAR_M).then((found) => {
      if (!isOver) name.value = found;
    });
    return () => {
      isOver = true;
    };
  }, [base, x, y]);
  return name.value;
}
