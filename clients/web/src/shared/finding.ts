// The events by which checks tell what they have found (docs/protocol/checks.md).

import type { DeliveredFeature } from "nearcast";

export interface Finding {
  readonly check: string;
  /** Ids of the events that do not fit together, by the variables of the check. */
  readonly bindings: unknown;
}

/** What an event tells of a check; `undefined` of any other event. */
export function findingOf(feature: DeliveredFeature): Finding | undefined {
  const { check, bindings } = (feature.properties as { check?: unknown; bindings?: unknown } | null) ?? {};
  const { by } = feature.derived ?? {};
  // Publishers may write anything into properties, and nothing into `derived`.
  return typeof check === "string" && by === `checks/${check}` ? { check, bindings } : undefined;
}

/** The ids of bindings, by their variables. */
export function idsOf(bindings: unknown): (readonly [variable: string, id: string])[] {
  if (typeof bindings !== "object" || bindings === null) return [];
  return Object.entries(bindings).flatMap(([variable, id]: [string, unknown]) =>
    typeof id === "string" || typeof id === "number" ? [[variable, String(id)] as const] : [],
  );
}
