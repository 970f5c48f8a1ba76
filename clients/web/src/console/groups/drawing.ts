// A group on the map: its objects, and a line between those that share a condition, with how far that is.

import { distance_m, type Place, type Plane } from "../../shared/map/plane.js";
import { waysDrawing, type Way } from "../situations/drawing.js";
import type { WhyDrawing } from "../why/drawing.js";
import { metres } from "../words.js";
import { objectsOf, type Group } from "./groups.js";

/** `placeOf`: where an object is, as far as the page knows. */
export function drawingOf(
  plane: Plane,
  group: Group,
  links: readonly (readonly [string, string])[],
  placeOf: (object: string) => Place | undefined,
): WhyDrawing {
  const places = objectsOf(group).flatMap((object) => {
    const place = placeOf(object);
    return place === undefined ? [] : [place];
  });
  return waysDrawing(plane, places, waysOf(plane.world, group, links, placeOf), "group");
}

export function waysOf(
  world: Plane["world"],
  group: Group,
  links: readonly (readonly [string, string])[],
  placeOf: (object: string) => Place | undefined,
): Way[] {
  return links.flatMap(([one, other]): Way[] => {
    const [from, to] = [one, other].map((role) => placeOf(group[role] ?? ""));
    return from === undefined || to === undefined ? [] : [{ from, to, text: metres(distance_m(world, from, to)) }];
  });
}
