// A finding that was opened: the events that do not fit together, in words and on the map.

import { degrees } from "../../shared/degrees.js";
import { useConsole } from "../context.js";
import type { Bound } from "../situations/bound.js";
import { BoundEvents } from "../situations/bound-events.js";
import { FindingPage } from "../situations/detail.js";
import { DocumentPart } from "./check.js";
import { drawingOf } from "./drawing.js";
import { subjectOf, ViolationSign } from "../why/name.js";
import { stepOf, stepWords, violationOf, violationTitle, violationWords } from "./violation.js";

export function FindingDetail({ name, id }: { readonly name: string; readonly id: string }) {
  const console = useConsole();
  const { checks, live, settings } = console;
  const limit = console.limitOf(name);
  const { violations } = live;
  const check = checks.get(name);
  return (
    <>
      <FindingPage
        of={checks}
        name={name}
        id={id}
        known={violations.get(id)}
        read={(feature) => violationOf(feature, violations.find)}
        drawingOf={drawingOf}
      >
        {({ bound, place }) => (
          <section aria-labelledby="bound">
            <p class="found-words numbers">
              <bdi>{subjectOf({ bound }, live.objects.attribute)}</bdi>: {violationWords({ bound }, settings.world, limit)}
            </p>
            <h3 id="bound">{bound.length === 1 ? "This event breaks it" : "These events do not fit together"}</h3>
            {/* Of two events all is said above. */}
            {bound.length > 2 ? <ViolatingEvents bound={bound} check={name} /> : <BoundEvents bound={bound} between={() => undefined} />}
            {bound.some(({ feature }) => feature === undefined) && (
              <p class="quiet">The map shows where the newest of them is: {degrees(place, settings.world)}.</p>
            )}
          </section>
        )}
      </FindingPage>
      {check !== undefined && <DocumentPart check={check} />}
    </>
  );
}

export function FindingHeading({ name }: { readonly name: string }) {
  const console = useConsole();
  return (
    <>
      <ViolationSign /> <bdi>{violationTitle(name, console.limitOf(name))}</bdi>
    </>
  );
}

/** Events that do not fit together, with how far it is from one to the next, and in which time. */
export function ViolatingEvents({ bound, check }: { readonly bound: readonly Bound[]; readonly check: string | undefined }) {
  const console = useConsole();
  const { world } = console.settings;
  return <BoundEvents bound={bound} between={(one, other) => stepWords(stepOf(world, one, other), console.limitOf(check))} />;
}
