// Checks: constraints on the events of some time. docs/protocol/checks.md of the broker describes them.

import type { PolygonGeometry } from "./areas.js";
import type { Filter } from "./frames.js";
import type { SituationActivity } from "./situations.js";

/** A set of events: each that satisfies the filter, for some time. */
export interface CheckContext extends Filter {
  /** Seconds for which an event is in the set. */
  readonly for_s: number;
}

/** What has to hold for the events of the sets: a CQL2 text over the variables, such as `SPEED(a, b) <= 55`, or what is made of others. */
export type Formula =
  | string
  | { readonly forall: string; readonly in: string; readonly that: Formula }
  | { readonly exists: string; readonly in: string; readonly that: Formula }
  | { readonly and: readonly Formula[] }
  | { readonly or: readonly Formula[] }
  | { readonly implies: readonly [Formula, Formula] }
  | { readonly not: Formula };

/** A check that the broker knows how to write; `object` is the attribute that says which object an event is about. */
export type CheckPreset =
  /** An object is no faster between two of its reports of a minute. */
  | { readonly preset: "speed"; readonly object: string; readonly max_m_per_s: number }
  /** An event that has this attribute has at most so much of it. */
  | { readonly preset: "accuracy"; readonly property: string; readonly max_m: number }
  /** An object does not report the very same place for so long. */
  | { readonly preset: "frozen"; readonly object: string; readonly for_s: number }
  /** Events are within a polygon. */
  | { readonly preset: "outside"; readonly polygon: PolygonGeometry }
  /** An object does not report twice within this distance and time. */
  | { readonly preset: "duplicate"; readonly object: string; readonly within_m: number; readonly for_s: number };

interface CheckOptions {
  /** The time that the sets go by: when events arrive (so when it is absent), or their `time`. */
  readonly clock?: "arrival" | "event";
  /**
   * What becomes of a violation: it is published (so when it is absent), its event is delivered with `violates`, or its event is refused with the
   * problem `inconsistent`.
   */
  readonly on_violation?: "tell" | "mark" | "drop";
}

/** Sets of events and a formula that has to hold for them, or a preset, which makes both. */
export type Check = CheckOptions & (CheckPreset | { readonly contexts: Readonly<Record<string, CheckContext>>; readonly formula: Formula });

/** A check as the broker shows it: with the sets and the formula that a preset became, conditions as text. */
export interface CheckDocument extends Required<CheckOptions> {
  /** In lists. */
  readonly name?: string;
  readonly contexts: Readonly<
    Record<string, { readonly for_s: number; readonly area?: Readonly<Record<string, unknown>>; readonly where?: string }>
  >;
  readonly formula: Formula;
  readonly activity: SituationActivity;
}

/** What {@link Session.putCheck} did. */
export interface PutCheck {
  readonly check: CheckDocument;
  /** Whether there was none of this name before. */
  readonly created: boolean;
}

/** The properties of what a check publishes, or lists where it marks or drops. A type, for `Properties` take no interface. */
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
export type Violation = {
  readonly type: "violation";
  /** The check's name. */
  readonly check: string;
  /** The ids of the events that do not fit together, by variable; absent for a reader that may not see these events. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** What became of the event that brought it, and the id of this event; absent where the check tells. */
  readonly outcome?: "marked" | "dropped";
  readonly event?: string;
};
