import type { DeliveredFeature } from "nearcast";

import type { Place } from "../shared/map/plane.js";

/** Where an event is. */
export function placeOf({ geometry: { coordinates } }: Pick<DeliveredFeature, "geometry">): Place {
  return [coordinates[0], coordinates[1]];
}
