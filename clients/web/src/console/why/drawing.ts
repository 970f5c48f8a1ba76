// An answer to Why on the map: the area, the event, and the line between them with its metres: whole as far as the area reaches, broken beyond.

import type { Feature, Position } from "geojson";
import type { Explanation } from "nearcast";

import type { Place, Plane } from "../../shared/map/plane.js";
import { shapesOf, type AreaShown } from "../map/areas.js";
import { metres } from "../words.js";

/** What is drawn that a check, a rule set or a group definition has found. */
export type FoundAs = "violation" | "derived" | "group";

export interface WhyDrawing {
  /**
   * Shapes and lines, each with `holds`, or with `as` where it shows a finding. A line has `way`: `whole`, or `gap` where it does not hold. A point with
   * `rim` is where the one becomes the other.
   */
  readonly features: readonly Feature[];
  /** A text at a place of the map, in degrees. */
  readonly labels: readonly {
    readonly at: readonly [number, number];
    readonly text: string;
    readonly holds?: boolean;
    readonly as?: FoundAs;
    /** The side or corner of its words that is at the place; their middle where that is absent. */
    readonly anchor?: "left" | `${"top" | "bottom"}-${"left" | "right"}`;
    /** It tells a mark's number, and stands beside the mark. */
    readonly isNumber?: boolean;
  }[];
  /** The event and the client that an answer is about. All other marks stand back. */
  readonly pins?: readonly Pin[];
}

/** A mark with its name. */
export interface Pin {
  readonly kind: "event" | "client";
  /** In degrees of the map. */
  readonly at: readonly [number, number];
  readonly name: string;
  readonly holds: boolean;
  /** On which side of the mark its words stand: away from what it is about. */
  readonly side: "above" | "below";
}

/** What is asked about: where it is, and what it is called. */
interface Named {
  readonly place: Place;
  readonly name: string;
}

/** Draws each filter's area; the client's place is absent where it is not shown. `saysNow`: the distance is of now, and the answer is of the past. */
export function whyDrawing(
  plane: Plane,
  explanation: Explanation,
  areas: readonly (AreaShown | undefined)[],
  event: Named,
  { place: client, name }: Omit<Named, "place"> & { readonly place: Place | undefined },
  saysNow = false,
): WhyDrawing {
  const at = plane.toMap(event.place);
  const holds = explanation.matched;
  const features: Feature[] = [point({ holds }, at)];
  const labels: WhyDrawing["labels"][number][] = [];
  const clientAt = client === undefined ? undefined : plane.toMap(client);
  // Two marks at one place have their words on either side of it.
  const isAbove = clientAt === undefined || at[1] >= clientAt[1];
  for (const [index, { area, matched }] of explanation.filters.entries()) {
    const asked = areas[index];
    const shapes = shapesOf(plane, asked, client, { holds: area.holds, matched });
    features.push(...shapes);
    const { distance_m, radius_m } = area as { distance_m?: number | null; radius_m?: number | null };
    const isRound = area.form === "following" || area.form === "circle";
    const middle = asked?.center === undefined ? client : ([asked.center[0] ?? 0, asked.center[1] ?? 0] as const);
    const to = isRound ? (middle === undefined ? undefined : plane.toMap(middle)) : nearest(shapes, at);
    const outside = area.holds ? undefined : (area.metres_outside ?? undefined);
    const far = isRound ? (distance_m ?? outside) : outside;
    if (to === undefined || far === undefined) continue;
    const isOut = outside !== undefined && isRound;
    const rim = Math.min(1, (radius_m ?? 0) / far);
    const atRim: [number, number] = [to[0] + (at[0] - to[0]) * rim, to[1] + (at[1] - to[1]) * rim];
    if (isOut) features.push(way("whole", true, [to, atRim]), way("gap", false, [at, atRim]), point({ rim: true, holds: false }, atRim));
    else features.push(way(area.holds ? "whole" : "gap", area.holds, [at, to]));
    const isSteep = Math.abs(at[1] - to[1]) > Math.abs(at[0] - to[0]) * Math.cos((at[1] * Math.PI) / 180);
    // What is outside of a circle has its words there, beside the line, however short that is: from the rim on, away from the circle.
    const part = !isOut ? 0.5 : isSteep ? (1 + rim) / 2 : rim;
    const corner = `${isAbove ? "top" : "bottom"}-${at[0] < to[0] ? "right" : "left"}` as const;
    labels.push({
      at: [to[0] + (at[0] - to[0]) * part, to[1] + (at[1] - to[1]) * part],
      text: `${saysNow ? "now " : ""}${metres(far)}${outside === undefined ? "" : isRound ? `, ${metres(outside)} outside` : " outside"}`,
      holds: area.holds,
      ...(isOut && { anchor: isSteep ? "left" : corner }),
    });
  }
  const pins: Pin[] = [{ kind: "event", at, name: event.name, holds, side: isAbove ? "above" : "below" }];
  if (clientAt !== undefined) pins.push({ kind: "client", at: clientAt, name, holds, side: isAbove ? "below" : "above" });
  return { features: [...aroundOf(features), ...features], labels, pins };
}

const way = (kind: "whole" | "gap", holds: boolean, coordinates: Position[]): Feature => ({
  type: "Feature",
  properties: { holds, way: kind },
  geometry: { type: "LineString", coordinates },
});

const point = (properties: Record<string, unknown>, coordinates: Position): Feature => ({
  type: "Feature",
  properties,
  geometry: { type: "Point", coordinates },
});

/** The world around the area, which is dimmed; nothing where there are several areas. */
function aroundOf(features: readonly Feature[]): Feature[] {
  const rings = features.flatMap(({ geometry }) => (geometry.type === "Polygon" ? geometry.coordinates.slice(0, 1) : []));
  const [ring] = rings;
  if (ring === undefined || rings.length > 1) return [];
  const world = [
    [-540, -85],
    [540, -85],
    [540, 85],
    [-540, 85],
    [-540, -85],
  ];
  return [{ type: "Feature", properties: { around: true }, geometry: { type: "Polygon", coordinates: [world, ring] } }];
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
