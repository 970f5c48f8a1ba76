// The draft's condition: the editor and what the broker says of it.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { useConsole } from "../context.js";
import type { Editor } from "./editor.js";

export function ConditionField() {
  const { draft, live } = useConsole();
  const place = useRef<HTMLDivElement>(null);
  const editor = useSignal<Editor | undefined>(undefined);
  useEffect(() => {
    let gone = false;
    void import("./editor.js").then(({ createEditor }) => {
      if (gone || place.current === null) return;
      editor.value = createEditor(
        place.current,
        draft.where.peek(),
        { labelledby: "where-label", describedby: "where-help trial" },
        () => live.attributes.list(),
        (text) => (draft.where.value = text),
      );
    });
    return () => {
      gone = true;
      editor.peek()?.remove();
    };
  }, []);
  useSignalEffect(() => {
    const now = draft.trial.value;
    if (now.state === "asking") return; // What is wrong stays underlined until it is known to be right.
    editor.value?.fault(now.state === "refused" ? now.faults.find(({ pointer }) => pointer.endsWith("/where"))?.detail : undefined);
  });
  return (
    <section aria-labelledby="where-label">
      <h3 id="where-label">Condition</h3>
      <div class="editor" ref={place} />
      <p id="where-help" class="quiet">
        CQL2. Ctrl+Space shows what may come next; empty takes any event.
      </p>
    </section>
  );
}
