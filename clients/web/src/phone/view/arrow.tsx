import type { JSX } from "preact";

import { distance_m, type Place } from "../../shared/map/plane.js";
import type { PageSettings } from "../../shared/pages.js";
import { bearing_deg } from "../words.js";

interface ArrowProps {
  readonly world: PageSettings["world"];
  readonly from: Place | undefined;
  readonly to: Place | undefined;
}

/** Which way something is; a dot where that is not known, or it is here. */
export function Arrow({ world, from, to }: ArrowProps): JSX.Element {
  const away = from !== undefined && to !== undefined && distance_m(world, from, to) >= 1;
  const style = away ? { transform: `rotate(${bearing_deg(world, from, to).toFixed(0)}deg)` } : {};
  return (
    <span class="arrow" aria-hidden="true">
      <svg viewBox="0 0 24 24" style={style}>
        {away ? <path d="M12 3 19 20 12 16 5 20Z" fill="currentColor" /> : <circle cx="12" cy="12" r="4" fill="currentColor" />}
      </svg>
    </span>
  );
}
