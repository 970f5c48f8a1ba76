import type { DeliveredFeature } from "nearcast";

import { useConsole } from "../context.js";
import { attributeOf } from "../live/objects.js";
import { valueText } from "../words.js";

/** What an event is called, as a text. */
export function nameOf(feature: DeliveredFeature, attribute: string | undefined): string {
  const object = attribute === undefined ? undefined : attributeOf(feature.properties, attribute);
  if (feature.key !== undefined) return valueText(feature.key, 60);
  if (object !== undefined && object !== null) return `${valueText(attribute, 40)} ${valueText(object, 60)}`;
  return valueText(feature.id, 60);
}

/** What an event is called: its key, its object, or its id. */
export function EventName({ feature }: { readonly feature: DeliveredFeature }) {
  const { live } = useConsole();
  const { attribute } = live.objects;
  const object = attribute === undefined ? undefined : attributeOf(feature.properties, attribute);
  if (feature.key !== undefined) return <bdi>{valueText(feature.key, 60)}</bdi>;
  if (object !== undefined && object !== null) {
    return (
      <>
        <bdi>{valueText(attribute, 40)}</bdi> <bdi>{valueText(object, 60)}</bdi>
      </>
    );
  }
  return <bdi>{valueText(feature.id, 60)}</bdi>;
}

/** A few of an event's properties on one line. */
export function EventSummary({ feature }: { readonly feature: DeliveredFeature }) {
  const { live } = useConsole();
  const shown = Object.entries((feature.properties as Record<string, unknown> | null) ?? {})
    .filter(([name]) => name !== live.objects.attribute)
    .slice(0, 4);
  return (
    <span class="summary">
      {shown.map(([name, value]) => (
        <span key={name}>
          <bdi class="quiet">{valueText(name, 24)}</bdi> <bdi>{valueText(value, 32)}</bdi>
        </span>
      ))}
    </span>
  );
}
