// Events that a finding is about, as far as the page has seen them.

import type { DeliveredFeature } from "nearcast";

export interface Bound {
  /** What it is there: a variable of a check, or a role of a group. */
  readonly variable?: string;
  readonly id: string;
  /** The event itself; absent where the page has not seen it. */
  readonly feature?: DeliveredFeature;
}

/** What is known of an event by its id. */
export type Find = (id: string) => DeliveredFeature | undefined;

/** Events by their ids, in the order of their times, as far as those are known. */
export function boundOf(ids: readonly (readonly [variable: string | undefined, id: string])[], find: Find): Bound[] {
  const bound = ids.map(([variable, id]): Bound => {
    const feature = find(id);
    return { ...(variable === undefined ? {} : { variable }), id, ...(feature === undefined ? {} : { feature }) };
  });
  const time = ({ feature }: Bound): number => (feature === undefined ? 0 : Date.parse(feature.time));
  return bound.sort((one, other) => time(one) - time(other));
}
