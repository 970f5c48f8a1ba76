// Rule sets: events become facts, and rules derive, merge and cancel them. docs/protocol/rules.md of the broker describes them.

import type { Properties } from "./events.js";
import type { Filter } from "./frames.js";
import type { SituationActivity } from "./situations.js";

/** Which events become a fact: each that satisfies the filter. */
export interface FactRule extends Filter {
  /** Its arguments: names of attributes, `@id`, `@lon`, `@lat`, `@time` (Unix seconds) and `@key`. None when it is absent. */
  readonly args?: readonly string[];
  /** Seconds after which it is taken away; never when it is absent. */
  readonly for_s?: number;
}

/** How a constraint is published. */
export interface Publication {
  /** Which arguments are longitude and latitude, counted from 0; where the event was that brought it when it is absent. */
  readonly at?: readonly [longitude: number, latitude: number];
  /**
   * The attributes of the event. `{0}` in a text stands for the first argument, and a text that is nothing else is that argument. The name of the
   * constraint as `type` when it is absent.
   */
  readonly properties?: Properties;
  /** The event's key, in which `{0}` stands for the first argument. */
  readonly key?: string;
  /** How long the event is live, in seconds. */
  readonly ttl_s?: number;
}

/** Which events become facts, the rules, and what of what they make is published. */
export interface RuleSet {
  /** By the name of the constraint. */
  readonly facts: Readonly<Record<string, FactRule>>;
  /** Constraint Handling Rules. */
  readonly program: string;
  /** The time that facts go by: when events arrive (so when it is absent), or their `time`. */
  readonly clock?: "arrival" | "event";
  /** By the name of the constraint. */
  readonly publish?: Readonly<Record<string, Publication>>;
}

/** A rule set as the broker shows it, conditions as text. */
export interface RuleSetDocument extends Required<Omit<RuleSet, "facts" | "publish">> {
  /** In lists. */
  readonly name?: string;
  readonly facts: Readonly<
    Record<
      string,
      {
        readonly area?: Readonly<Record<string, unknown>>;
        readonly where?: string;
        readonly args: readonly string[];
        readonly for_s?: number;
      }
    >
  >;
  readonly publish: Readonly<Record<string, Publication & { readonly properties: Properties }>>;
  readonly activity: SituationActivity;
}

/** What {@link Session.putRuleSet} did. */
export interface PutRuleSet {
  readonly ruleSet: RuleSetDocument;
  /** Whether there was none of this name before. */
  readonly created: boolean;
}

/** The properties of what a rule set publishes where a rule's body failed: what the added fact did was undone. A type, for `Properties` take no interface. */
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
export type RuleFailure = {
  readonly type: "failed";
  /** The rule set's name. */
  readonly rules: string;
  /** The kind of the fact. */
  readonly fact: string;
};
