import type { DeliveredFeature } from "nearcast";

import { objectName, readable } from "../../shared/readable.js";
import { useConsole } from "../context.js";
import { violationOf, violationTitle, violationWords, type Violation } from "../checks/violation.js";
import { changeOf, objectsOf } from "../groups/groups.js";
import { attributeOf } from "../live/objects.js";
import { rulesOf } from "../rules/derived.js";
import { counted, valueText } from "../words.js";

/** What a finding is about: the object of its newest event, or how many events where the page has not seen that. */
export function subjectOf({ bound }: Pick<Violation, "bound">, attribute: string | undefined): string {
  const newest = bound.at(-1)?.feature;
  return newest === undefined ? counted(bound.length, "event") : nameOf(newest, attribute);
}

/** What an event is called, as a text. */
export function nameOf(feature: DeliveredFeature, attribute: string | undefined): string {
  const object = attribute === undefined ? undefined : attributeOf(feature.properties, attribute);
  if (feature.key !== undefined) return valueText(feature.key, 60);
  if (object !== undefined && object !== null) return objectName(valueText(attribute, 40), valueText(object, 60));
  return valueText(feature.id, 60);
}

/** What an event is called: its key, its object, or its id. */
export function EventName({ feature }: { readonly feature: DeliveredFeature }) {
  const console = useConsole();
  const { live, groups } = console;
  const { attribute } = live.objects;
  const violation = violationOf(feature, live.violations.find);
  if (violation !== undefined) {
    return (
      <>
        <ViolationSign /> <bdi>{violationTitle(violation.check, console.limitOf(violation.check))}</bdi>:{" "}
        <bdi>{subjectOf(violation, attribute)}</bdi>
      </>
    );
  }
  if (rulesOf(feature) !== undefined) {
    return (
      <>
        <DerivedSign /> <bdi>{nameOf(feature, attribute)}</bdi>
      </>
    );
  }
  const change = changeOf(feature);
  if (change !== undefined) {
    return (
      <>
        <GroupSign /> <bdi>{change.definition}</bdi>
        {change.group !== undefined && ": "}
        {change.group !== undefined && (
          <bdi>{objectsOf(change.group, Object.keys(groups.get(change.definition)?.roles ?? {})).join(" · ")}</bdi>
        )}
      </>
    );
  }
  return <bdi>{nameOf(feature, attribute)}</bdi>;
}

/** A few of an event's properties on one line; what says itself what it is stands there without its name, as `50 km/h` does. */
export function EventSummary({ feature }: { readonly feature: DeliveredFeature }) {
  const console = useConsole();
  const { live, settings } = console;
  const violation = live.violations.get(String(feature.id)) ?? violationOf(feature, live.violations.find);
  if (violation !== undefined)
    return <span class="summary numbers">{violationWords(violation, settings.world, console.limitOf(violation.check))}</span>;
  const change = changeOf(feature);
  if (change !== undefined) return <span class="summary">{change.transition}</span>;
  const shown = Object.entries((feature.properties as Record<string, unknown> | null) ?? {})
    .filter(([name]) => name !== live.objects.attribute)
    .slice(0, 4);
  return (
    <span class="summary">
      {shown.map(([name, value]) => {
        const raw = valueText(value, 32);
        const [label, text] = readable(name, raw);
        const isPlain = text !== raw || (typeof value === "string" && /\p{L}/u.test(value));
        return (
          <span key={name} title={label}>
            {!isPlain && <bdi class="quiet">{valueText(label, 24)}</bdi>} <bdi>{text}</bdi>
          </span>
        );
      })}
    </span>
  );
}

/** The sign of what violates a check, as the map has it. */
export function ViolationSign() {
  return <span class="sample violations" role="img" aria-label="violates" />;
}

/** The sign of what a rule set made, as the map has it. */
export function DerivedSign() {
  return <span class="sample derived" role="img" aria-label="derived" />;
}

/** The sign of a group, as the map has it. */
export function GroupSign() {
  return <span class="sample groups" role="img" aria-label="group" />;
}
