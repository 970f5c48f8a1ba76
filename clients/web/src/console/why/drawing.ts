// An answer to Why on the map: the area, the event, and the line between them with its metres; red where the place does not hold.

import type { Feature, Position } from "geojson";
import type { Explanation } from "nearcast";

import type { Place, Plane } from "../../shared/map/plane.js";
import { shapesOf, type AreaShown } from "../map/areas.js";
import { metres } from "../words.js";

/** What is drawn that a check, a rule set or a group definition has found. */
export type FoundAs = "violation" | "derived" | "group";

export interface WhyDrawing {
  /** Shapes and lines, each with `holds`, or with `as` where it shows a finding. */
  readonly features: readonly Feature[];
  /** A text at a place of the map, in degrees. */
  readonly labels: readonly {
    readonly at: readonly [number, number];
    readonly text: string;
    readonly holds?: boolean;
    readonly as?: FoundAs;
    /** It tells a mark's number, and stands beside the mark. */
    readonly isNumber?: boolean;
  }[];
}

/** Draws each filter's area; `client` is where the client is, as far as that is shown. */
export function whyDrawing(
  plane: Plane,
  explanation: Explanation,
  areas: readonly (AreaShown | undefined)[],
  event: Place,
  client: Place | undefined,
): WhyDrawing {
  const at = plane.toMap(event);
  const features: Feature[] = [
    { type: "Feature", properties: { holds: explanation.matched }, geometry: { type: "Point", coordinates: at } },
  ];
  const labels: WhyDrawing["labels"][number][] = [];
  for (const [index, { area, matched }] of explanation.filters.entries()) {
    const asked = areas[index];
    const shapes = shapesOf(plane, asked, client, { holds: area.holds, matched });
    features.push(...shapes);
    const { distance_m } = area as { distance_m?: number | null };
    const isRound = area.form === "following" || area.form === "circle";
    const middle = asked?.center === undefined ? client : ([asked.center[0] ?? 0, asked.center[1] ?? 0] as const);
    const to = isRound ? (middle === undefined ? undefined : plane.toMap(middle)) : nearest(shapes, at);
    const far = area.holds && !isRound ? undefined : (distance_m ?? area.metres_outside ?? undefined);
    if (to === undefined || far === undefined) continue;
    features.push({
      type: "Feature",
      properties: { holds: area.holds, way: true },
      geometry: { type: "LineString", coordinates: [at, to] },
    });
    const outside = area.holds || area.metres_outside === null ? "" : `, ${metres(area.metres_outside)} outside`;
    labels.push({
      at: [(at[0] + to[0]) / 2, (at[1] + to[1]) / 2],
      text: `${metres(far)}${isRound ? outside : " outside"}`,
      holds: area.holds,
    });
  }
  return { features, labels };
}

/** The place of the shapes' outlines that is nearest on the map. */
export function nearest(shapes: readonly Feature[], [x, y]: readonly [number, number]): [number, number] | undefined {
  const lines: Position[][] = shapes.flatMap(({ geometry }) =>
    geometry.type === "Polygon" ? geometry.coordinates : geometry.type === "LineString" ? [geometry.coordinates] : [],
  );
  // A degree of longitude is shorter than one of latitude.
  const wide = Math.cos((y * Math.PI) / 180);
  let best: { readonly at: [number, number]; readonly away: number } | undefined;
  for (const line of lines) {
    for (const [index, [x2 = 0, y2 = 0]] of line.entries()) {
      const [x1 = x2, y1 = y2] = line[index - 1] ?? [];
      const [dx, dy] = [(x2 - x1) * wide, y2 - y1];
      const long = dx * dx + dy * dy;
      const part = long === 0 ? 0 : Math.min(1, Math.max(0, ((x - x1) * wide * dx + (y - y1) * dy) / long));
      const at: [number, number] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
      const away = Math.hypot((at[0] - x) * wide, at[1] - y);
      if (best === undefined || away < best.away) best = { at, away };
    }
  }
  return best?.at;
}
