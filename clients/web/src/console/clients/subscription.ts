// A subscription in words.

import type { SubscriptionDocument } from "nearcast";

import { areaWords } from "../map/areas.js";
import { count, metres } from "../words.js";

/** The filters of a subscription on one line. */
export function conditionWords(filters: SubscriptionDocument["filters"]): string {
  return filters.map(({ area, where }) => [areaWords(area, metres), ...(where === undefined ? [] : [where])].join(", ")).join("; or ");
}

/** Whether it matches, and since when it does not. */
export function activityWords(
  activity: SubscriptionDocument["activity"],
  now_ms: number,
): { readonly quiet: boolean; readonly text: string } {
  if (activity === undefined) return { quiet: false, text: "" };
  const { matches, last_match, evaluations } = activity;
  if (last_match === null) {
    return {
      quiet: true,
      text: evaluations === 0 ? "quiet: no event was held against it yet" : `quiet: none of ${count(evaluations)} events matched`,
    };
  }
  const ago_s = Math.max(0, (now_ms - Date.parse(last_match)) / 1000);
  const quiet = ago_s > QUIET_S;
  const ago = ago_s < 90 ? `${Math.round(ago_s)} s` : `${Math.round(ago_s / 60)} min`;
  return { quiet, text: `${quiet ? "quiet: " : ""}${count(matches)} matched, the last ${ago} ago` };
}

/** A subscription that has matched nothing for so long is called quiet. */
const QUIET_S = 60;
