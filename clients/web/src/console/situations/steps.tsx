// From one finding to the one before or after it.

import { useSignal } from "@preact/signals";
import { ChevronLeft, ChevronRight } from "lucide";
import { useEffect } from "preact/hooks";
import type { DeliveredFeature } from "nearcast";

import { Icon } from "../../shared/icon.js";
import { useConsole } from "../context.js";
import { begun } from "../../shared/readable.js";
import { count, counted } from "../words.js";
import { FOUND, type Situation, type Situations } from "./list.js";

export function FindingSteps({
  of,
  name,
  id,
}: {
  readonly of: Pick<Situations<Situation>, "kind" | "path">;
  readonly name: string;
  readonly id: string;
}) {
  const console = useConsole();
  /** Ids of the findings that the broker keeps, the newest first. */
  const ids = useSignal<readonly string[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const look = async (): Promise<void> => {
      try {
        const features = (await console.access.call(of.path(name, "/findings"), { signal: stop.signal })) as readonly DeliveredFeature[];
        ids.value = features.map((feature) => String(feature.id));
      } catch {
        // The page below says why there are none.
      }
    };
    void look();
    return () => stop.abort();
  }, [name, id]);
  const at = ids.value.indexOf(id);
  if (at < 0 || ids.value.length < 2) return null;
  const [newer, older] = [ids.value[at - 1], ids.value[at + 1]];
  const go = (to: string | undefined): void => {
    if (to !== undefined) console.replace({ kind: "finding", of: of.kind, name, id: to });
  };
  // A button that is switched off would lose the focus: it stays, and does nothing.
  return (
    <nav class="finding-steps" aria-label={`${begun(FOUND[of.kind])}s`}>
      <button type="button" class="small" title="Newer" aria-label="Newer" aria-disabled={newer === undefined} onClick={() => go(newer)}>
        <Icon of={ChevronLeft} />
      </button>
      <span class="visually-hidden" role="status">
        {count(at + 1)} of {counted(ids.value.length, FOUND[of.kind])}
      </span>
      <button type="button" class="small" title="Older" aria-label="Older" aria-disabled={older === undefined} onClick={() => go(older)}>
        <Icon of={ChevronRight} />
      </button>
    </nav>
  );
}
