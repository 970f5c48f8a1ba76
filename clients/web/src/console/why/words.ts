// An explanation of the broker's in words and figures.

import type { Explanation } from "nearcast";

import { metres, valueText } from "../words.js";

export interface ConstraintWords {
  readonly mark: "yes" | "no" | "unknown";
  readonly constraint: string;
  /** What the event has there. */
  readonly value: string;
  readonly reason: string;
}

export interface FilterWords {
  readonly matched: boolean;
  readonly area: { readonly mark: "yes" | "no"; readonly text: string };
  readonly nearest?: { readonly mark: "yes" | "no"; readonly text: string };
  readonly constraints: readonly ConstraintWords[];
}

const FORMS: Readonly<Record<string, string>> = {
  following: "the circle around the client",
  circle: "the circle",
  polygon: "the polygon",
  corridor: "the corridor",
  route: "the corridor along the route",
};

type Filter = Explanation["filters"][number];
/** What the area has besides what the client's type says. */
type Area = Filter["area"] & {
  readonly distance_m?: number | null;
  readonly radius_m?: number | null;
  readonly nearest?: { readonly k: number; readonly rank: number | null; readonly holds: boolean };
};

/** A part of the explanation as people read it. */
export function filterWords({ matched, area, condition }: Filter): FilterWords {
  const { nearest } = area as Area;
  return {
    matched,
    area: { mark: area.holds ? "yes" : "no", text: areaText(area) },
    ...(nearest === undefined
      ? {}
      : {
          nearest: {
            mark: nearest.holds ? "yes" : "no",
            text:
              nearest.rank === null
                ? `It is not among those that count for the ${nearest.k} nearest.`
                : `It is number ${nearest.rank}; the nearest ${nearest.k} count.`,
          } as const,
        }),
    constraints: condition.constraints.map(({ constraint, value, truth, reason }) => ({
      mark: truth === "true" ? "yes" : truth === "false" ? "no" : "unknown",
      constraint,
      value: value === null ? "absent" : valueText(value),
      reason,
    })),
  };
}

function areaText({ form, holds, distance_m, radius_m, metres_outside }: Area): string {
  if (form === "everywhere") return "Everywhere: any place will do.";
  const name = FORMS[form] ?? form;
  if (metres_outside === null && form === "route") return "No way is known along which the corridor could lie.";
  if (metres_outside === null) return "The client has told no position, so that the area around it is nowhere.";
  const from =
    form === "following"
      ? "from the client"
      : form === "circle"
        ? "from its middle"
        : form === "corridor" || form === "route"
          ? "from its line"
          : "";
  const figures =
    distance_m === null || distance_m === undefined || from === ""
      ? ""
      : ` ${metres(distance_m)} ${from}${radius_m === null || radius_m === undefined ? "" : `, of ${metres(radius_m)}`}.`;
  return holds ? `Inside of ${name}.${figures}` : `${metres(metres_outside)} outside of ${name}.${figures}`;
}

/** What else the answer says: of the event's own reach, of the client's place, of transitions. */
export function notes(explanation: Explanation): string[] {
  const { reach, position, position_withheld } = explanation as {
    readonly reach?: {
      readonly holds: boolean;
      readonly reach_m: number;
      readonly distance_m: number | null;
      readonly metres_outside: number | null;
    } | null;
    readonly position?: { readonly age_s: number | null; readonly accuracy_m: number | null } | null;
    readonly position_withheld?: boolean;
  };
  const said: string[] = [];
  if (reach !== null && reach !== undefined) {
    const distance = reach.distance_m === null ? "" : ` The client is ${metres(reach.distance_m)} away.`;
    said.push(`The event reaches ${metres(reach.reach_m)}, which ${reach.holds ? "is far enough" : "is not far enough"}.${distance}`);
  }
  if (position_withheld === true)
    said.push("The client’s position is not shown to others, so that the answer is that of a client without one.");
  else if (position !== null && position !== undefined && position.age_s !== null) {
    const accuracy = position.accuracy_m === null ? "" : `, good to ${metres(position.accuracy_m)}`;
    said.push(`Answered for where the client was ${Math.round(position.age_s)} s ago${accuracy}, as others are shown it.`);
  }
  return said;
}
