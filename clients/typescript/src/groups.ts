// Group definitions: which live objects fit together, one for each role. docs/protocol/groups.md of the broker describes them.

import type { Filter } from "./frames.js";
import type { SituationActivity } from "./situations.js";

/** Which live objects may take a role: each that satisfies the filter. */
export type Role = Filter;

/** Roles, conditions between them, and which groups are reported. */
export interface GroupDefinition {
  /**
   * By name, 1 to 8. Their order counts: a group is reported at the place of its object of the first role. JavaScript puts names that are whole numbers
   * before all others.
   */
  readonly roles: Readonly<Record<string, Role>>;
  /** CQL2 texts, each over one or two roles, such as `DISTANCE(taxi, rider) <= 800`; all have to hold. */
  readonly where?: readonly string[];
  /** Reported groups, 1 to 1,000: the first by `order`. 100 when it is absent. */
  readonly limit?: number;
  /** A term by whose number groups are ranked, ascending; then, or when it is absent, the names of the objects, role by role. */
  readonly order?: string;
}

/** A group definition as the broker shows it, conditions as text. */
export interface GroupDefinitionDocument extends Required<Omit<GroupDefinition, "roles" | "order">>, Pick<GroupDefinition, "order"> {
  /** In lists. */
  readonly name?: string;
  readonly roles: Readonly<Record<string, { readonly area?: Readonly<Record<string, unknown>>; readonly where?: string }>>;
  readonly activity: SituationActivity;
  /** The reported groups now, in their order: the object of each role. Absent before it has begun. */
  readonly groups?: readonly Readonly<Record<string, string>>[];
}

/** Why an object is in groups or in none. */
export interface ExplainedObject {
  readonly object: string;
  /** How many reported groups have it. */
  readonly groups: number;
  /** How it stands in each of its roles, in their order. */
  readonly roles: readonly ExplainedRole[];
  /** Why, in a sentence. */
  readonly why: string;
}

/** How an object stands in one of its roles. */
export interface ExplainedRole {
  readonly role: string;
  /** Conditions over the role alone that are not true of it; absent where all are. */
  readonly failed?: readonly string[];
  /** Whether it satisfies these and has a partner in each role that shares a condition with its own, which is consistent, too. */
  readonly consistent: boolean;
  /** One for each role that shares a condition with its own. */
  readonly partners: readonly ExplainedPartners[];
}

/** What is left of another role's candidates beside an object. */
export interface ExplainedPartners {
  /** The other role. */
  readonly role: string;
  /** Its candidates. */
  readonly candidates: number;
  /** How many of them each condition over it alone and over both roles leaves by itself. */
  readonly left: readonly { readonly where: string; readonly candidates: number }[];
  /** How many all of these leave. */
  readonly fitting: number;
  /** How many of those are consistent. */
  readonly consistent: number;
}

/** What {@link Session.putGroupDefinition} did. */
export interface PutGroupDefinition {
  readonly groupDefinition: GroupDefinitionDocument;
  /** Whether there was none of this name before. */
  readonly created: boolean;
}

/** The properties of what a group definition publishes. A type, for `Properties` take no interface. */
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
export type GroupProperties = {
  readonly type: "group";
  /** The group definition's name. */
  readonly group: string;
  /** The object of each role: its key, or the id of its event; absent for a reader that may not see these events. */
  readonly roles?: Readonly<Record<string, string>>;
  /** Whether the group is reported from now on, or no more. */
  readonly transition: "enter" | "exit";
};
