// An explanation of the broker's in words and figures.

import type { Explanation } from "nearcast";

import type { Place } from "../../shared/map/plane.js";
import { readable } from "../../shared/readable.js";
import { metres, moment, span, valueText } from "../words.js";

export interface ConstraintWords {
  readonly mark: "yes" | "no" | "unknown";
  readonly constraint: string;
  /** What the event has there: `Speed`, `16 km/h`. */
  readonly label: string;
  readonly value: string;
  readonly reason: string;
}

/** How far the event is from the middle or the line of an area, and how far it may be. */
export interface Distance {
  readonly distance_m: number;
  readonly radius_m: number;
}

export interface FilterWords {
  readonly matched: boolean;
  readonly area: { readonly mark: "yes" | "no"; readonly text: string; readonly distance?: Distance };
  readonly nearest?: { readonly mark: "yes" | "no"; readonly text: string };
  readonly constraints: readonly ConstraintWords[];
  /** Not each constraint has to. */
  readonly conditionHolds: boolean;
}

const FORMS: Readonly<Record<string, string>> = {
  following: "the circle around the client",
  circle: "the circle",
  polygon: "the polygon",
  corridor: "the corridor",
  route: "the corridor along the route",
};

/** What a distance is measured from. */
const FROM: Readonly<Record<string, string>> = {
  following: "the client",
  circle: "the middle",
  corridor: "the line",
  route: "the way",
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
  const { nearest, distance_m, radius_m } = area as Area;
  const distance = typeof distance_m === "number" && typeof radius_m === "number" ? { distance: { distance_m, radius_m } } : {};
  return {
    matched,
    area: { mark: area.holds ? "yes" : "no", text: areaText(area), ...distance },
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
    conditionHolds: condition.truth === "true" || condition.constraints.length === 0,
    constraints: condition.constraints.map(({ constraint, attribute, value, truth, reason }) => {
      const [label, text] = readable(attribute, valueText(value));
      return {
        mark: truth === "true" ? "yes" : truth === "false" ? "no" : "unknown",
        constraint,
        label,
        value: value === null ? "absent" : text,
        reason,
      };
    }),
  };
}

/** The filter that an answer is about: the one that takes the event, else the one that comes closest. */
export function decisive(explanation: Explanation): Filter | undefined {
  const held = ({ matched, area, condition }: Filter): number =>
    matched ? Infinity : Number(area.holds) + condition.constraints.filter(({ truth }) => truth === "true").length;
  return [...explanation.filters].sort((one, other) => held(other) - held(one))[0];
}

/**
 * What became of an event at a client, which is not known of one that was not published, and not of one that is too old. When it was delivered is known
 * where it went out as it was published, and where the client was then as far as positions are shown.
 */
export type Fate =
  | { readonly delivered: true; readonly at?: string | undefined; readonly place?: Place | undefined }
  | { readonly delivered: false }
  | undefined;

/**
 * What became of the event, and nothing of what holds now; with what held `then`, where that is known: `Delivered to client ann at 18:04:08: it was 320 m
 * away, within the 500 m around the client, and both conditions held.`
 */
export function verdict(client: string, fate: NonNullable<Fate>, then?: Explanation): string {
  if (!fate.delivered) return `Not delivered to client ${client}.`;
  const said = `Delivered to client ${client}${fate.at === undefined ? "" : ` at ${moment(fate.at)}`}`;
  return then === undefined ? `${said}.` : `${said}: ${reasonOf(then, PAST)}.`;
}

/** An answer of which nothing is known but what holds now: `Client ann would receive it: it is 320 m away, within the 500 m around the client.` */
export function sentence(explanation: Explanation, client: string): string {
  return `Client ${client} ${explanation.matched ? "would receive it" : "would not receive it"}: ${reasonOf(explanation)}.`;
}

/** What holds now, beside what became of the event: `It is 320 m away, within the 500 m around the client, and both conditions hold.` */
export function nowSentence(explanation: Explanation, fate: NonNullable<Fate>): string {
  const reason = reasonOf(explanation);
  if (explanation.matched !== fate.delivered) return `It ${explanation.matched ? "would" : "would not"} receive it now: ${reason}.`;
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}

/** Verbs of a reason. */
const PRESENT = { is: "is", does: "will do", holds: "holds", hold: "hold" } as const;
const PAST: Record<keyof typeof PRESENT, string> = { is: "was", does: "did", holds: "held", hold: "held" };

/** Why the event is taken or not, as a part of a sentence. */
function reasonOf(explanation: Explanation, verbs: typeof PAST = PRESENT): string {
  const { matched } = explanation;
  const filter = decisive(explanation);
  if (filter?.matched !== matched) return explanation.why;
  const { area, condition } = filter;
  const { nearest } = area as Area;
  if (matched && area.form === "everywhere" && condition.constraints.length === 0) return `any place and any content ${verbs.does}`;
  const where = whereWords(area, verbs);
  const failed = [
    ...(nearest?.holds === false ? [nearestWords(nearest)] : []),
    ...condition.constraints.filter(({ truth }) => truth !== "true" && condition.truth !== "true").map(failWords),
  ].slice(0, 2);
  if (matched) return `${where}, and ${holdWords(condition.constraints, verbs)}`;
  return failed.length === 0 ? where : `${where}, ${area.holds ? "but" : "and"} ${failed.join("; ")}`;
}

function nearestWords({ k, rank }: NonNullable<Area["nearest"]>): string {
  return rank === null ? `it is not among the ${k} nearest` : `it is number ${rank} by distance, and the nearest ${k} count`;
}

function holdWords(constraints: Filter["condition"]["constraints"], { does, holds, hold }: typeof PAST): string {
  const [only] = constraints;
  if (only === undefined) return `any content ${does}`;
  // Not each part of it has to.
  if (constraints.some(({ truth }) => truth !== "true")) return `its condition ${holds}`;
  if (constraints.length === 1) return `${only.constraint} ${holds}`;
  return constraints.length === 2 ? `both conditions ${hold}` : `its conditions ${hold}`;
}

function failWords({ attribute, value, constraint }: Filter["condition"]["constraints"][number]): string {
  const [label, text] = readable(attribute, valueText(value));
  return value === null
    ? `it has no ${attribute}, and ${constraint} is asked for`
    : `its ${label.toLowerCase()} is ${text}, and ${constraint} is asked for`;
}

/** Where the event is for the area: a part of the sentence. */
function whereWords(area: Filter["area"], { is, does }: typeof PAST): string {
  const { form, holds, distance_m, radius_m, metres_outside } = area as Area;
  if (form === "everywhere") return `any place ${does}`;
  if (metres_outside === null)
    return form === "route" ? "no way is known along which it could lie" : "the place of the client is not known";
  const away = typeof distance_m === "number" ? metres(distance_m) : undefined;
  const circle = typeof radius_m === "number" ? metres(radius_m) : undefined;
  if (form === "following" && away !== undefined && circle !== undefined)
    return holds
      ? `it ${is} ${away} away, within the ${circle} around the client`
      : `it ${is} ${away} away, ${metres(metres_outside)} too far for the ${circle} around the client`;
  const name = FORMS[form] ?? form;
  return holds ? `it ${is} inside ${name}` : `it ${is} ${metres(metres_outside)} outside ${name}`;
}

function areaText({ form, holds, distance_m, radius_m, metres_outside }: Area): string {
  if (form === "everywhere") return "Everywhere: any place will do.";
  const name = FORMS[form] ?? form;
  if (metres_outside === null && form === "route") return "No way is known along which the corridor could lie.";
  if (metres_outside === null) return "The client has told no position, so that the area around it is nowhere.";
  const from = FROM[form];
  if (typeof distance_m === "number" && typeof radius_m === "number" && from !== undefined)
    return `${metres(distance_m)} from ${from}, ${holds ? `at most ${metres(radius_m)}` : `${metres(metres_outside)} too far`}.`;
  return holds ? `Inside of ${name}.` : `${metres(metres_outside)} outside of ${name}.`;
}

/** A client may have gone elsewhere since it told a position that is older. */
const OLD_S = 60;

/** What else the answer says: a sentence of the event's own reach, and how well the client's place is known. */
export function notes(explanation: Explanation): { readonly reach?: string; readonly position?: string; readonly isOld?: true } {
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
  const said: { reach?: string; position?: string; isOld?: true } = {};
  if (reach !== null && reach !== undefined) {
    const distance = reach.distance_m === null ? "" : ` The client is ${metres(reach.distance_m)} away.`;
    said.reach = `The event reaches ${metres(reach.reach_m)}, which ${reach.holds ? "is far enough" : "is not far enough"}.${distance}`;
  }
  if (position_withheld === true) said.position = "not shown to others, so taken as unknown";
  else if (position !== null && position !== undefined && position.age_s !== null) {
    const accuracy = position.accuracy_m === null ? "" : `, good to ${metres(position.accuracy_m)}`;
    said.position = `${span(position.age_s)} old${accuracy}`;
    if (position.age_s > OLD_S) said.isOld = true;
  }
  return said;
}
