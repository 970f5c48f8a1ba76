// A finding that was opened: the events that do not fit together, in words and on the map.

import { TriangleAlert } from "lucide";

import { degrees } from "../../shared/degrees.js";
import { Icon } from "../../shared/icon.js";
import { unbroken } from "../../shared/readable.js";
import { useConsole } from "../context.js";
import type { Bound } from "../situations/bound.js";
import { BoundEvents } from "../situations/bound-events.js";
import { FindingPage } from "../situations/detail.js";
import { DocumentPart } from "./check.js";
import { drawingOf } from "./drawing.js";
import { Gauge } from "../why/gauge.js";
import { subjectOf, ViolationSign } from "../why/name.js";
import { limitWords, speedWords, stepOf, stepWords, violationOf, violationTitle, violationWords, wayWords } from "./violation.js";

export function FindingDetail({ name, id }: { readonly name: string; readonly id: string }) {
  const console = useConsole();
  const { checks, settings } = console;
  const limit = console.limitOf(name);
  const { violations } = console.live;
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
        verdict={({ bound }) => <Found bound={bound} limit={limit} />}
      >
        {({ bound, place }) => (
          <section aria-labelledby="bound">
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

/** What was found in one sentence, and the speed beside its limit where that was it. */
function Found({ bound, limit }: { readonly bound: readonly Bound[]; readonly limit: number | undefined }) {
  const { live, settings } = useConsole();
  const subject = <bdi>{subjectOf({ bound }, live.objects.attribute)}</bdi>;
  const [one, other] = bound.map(({ feature }) => feature);
  const step = one === undefined || other === undefined || bound.length !== 2 ? undefined : stepOf(settings.world, one, other);
  const isSpeed = limit !== undefined && step !== undefined && step.seconds > 0;
  const words = isSpeed ? speedWords(step, limit) : undefined;
  return (
    <div class="found-words numbers">
      <div class="verdict">
        <Icon of={TriangleAlert} size={22} />
        <p>
          {words === undefined ? (
            <>
              {subject}: {violationWords({ bound }, settings.world, limit)}
            </>
          ) : (
            <>
              {subject}
              {unbroken(` moved ${step === undefined ? "" : wayWords(step)}. That is ${words.speed}; the limit is ${words.limit}.`)}
            </>
          )}
        </p>
      </div>
      {isSpeed && <Gauge value={step.metres / step.seconds} limit={limit} words={[words?.speed ?? "", limitWords(limit)]} />}
    </div>
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
