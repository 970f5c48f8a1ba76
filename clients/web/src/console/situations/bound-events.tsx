// The events that a finding is about, in a list.

import { LocateFixed } from "lucide";
import type { DeliveredFeature } from "nearcast";

import { Icon } from "../../shared/icon.js";
import { useConsole } from "../context.js";
import { placeOf } from "../place.js";
import { EventName, EventSummary } from "../why/name.js";
import { clock } from "../words.js";
import type { Bound } from "./bound.js";

export function BoundEvents({
  bound,
  between,
}: {
  readonly bound: readonly Bound[];
  /** What lies between an event and the next. */
  readonly between?: (one: DeliveredFeature, other: DeliveredFeature) => string | undefined;
}) {
  const console = useConsole();
  return (
    <ol class="bound">
      {bound.map(({ variable, id, feature }, index) => {
        const before = bound[index - 1]?.feature;
        // It is called so on the map, too.
        const isMarked = between !== undefined && bound.length > 1;
        const words = feature !== undefined && before !== undefined ? between?.(before, feature) : undefined;
        return (
          <li key={`${variable} ${id}`}>
            {words !== undefined && (
              <p class="step numbers">
                <span aria-hidden="true">↓ </span>
                {words}
              </p>
            )}
            <div class="card">
              {isMarked && <span class="number">{variable ?? index + 1}</span>}
              <p>
                {variable !== undefined && !isMarked && (
                  <>
                    <code>{variable}</code>{" "}
                  </>
                )}
                {feature === undefined ? (
                  <>
                    <bdi>{id}</bdi> <span class="quiet">came before this page was opened, or too long ago for it</span>
                  </>
                ) : (
                  <>
                    <button type="button" class="link" onClick={() => console.open({ kind: "event", feature })}>
                      <EventName feature={feature} />
                    </button>{" "}
                    <span class="quiet numbers">{clock(feature.time)}</span>
                  </>
                )}
              </p>
              {feature !== undefined && <EventSummary feature={feature} />}
              {feature !== undefined && (
                <button type="button" class="small" onClick={() => console.view.value?.goTo(placeOf(feature))}>
                  <Icon of={LocateFixed} size={14} /> Show
                </button>
              )}
            </div>
          </li>
        );
      })}
    </ol>
  );
}
