// A field for a document or a program, with the faults that the broker finds in it at their places.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Fault } from "nearcast";

import type { Place } from "./pointers.js";
import type { Language, TextEditor } from "./text-editor.js";

export function EditorField({
  id,
  label,
  language,
  text,
  change,
  faults,
  placesIn,
  children,
}: {
  readonly id: string;
  readonly label: string;
  readonly language: Language;
  readonly text: string;
  readonly change: (text: string) => void;
  readonly faults: readonly Fault[];
  /** Where in the text the faults are. */
  readonly placesIn: (text: string, faults: readonly Fault[]) => readonly Place[];
  /** What is said of it. */
  readonly children: ComponentChildren;
}) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useSignal<TextEditor | undefined>(undefined);
  const told = useSignal<readonly Fault[]>(faults);
  told.value = faults;
  /** As it was when the faults were told: they are of that text. */
  const places = useSignal<readonly Place[]>([]);
  useEffect(() => {
    let gone = false;
    void import("./text-editor.js").then(({ createTextEditor }) => {
      if (gone || place.current === null) return;
      const labels = { labelledby: `${id}-label`, describedby: `${id}-faults` };
      editor.value = createTextEditor(place.current, language, text, labels, change);
    });
    return () => {
      gone = true;
      editor.peek()?.remove();
    };
  }, []);
  const latest = useRef(text);
  latest.current = text;
  useSignalEffect(() => {
    places.value = told.value.length === 0 ? [] : placesIn(latest.current, told.value);
    editor.value?.faults(places.value);
  });
  return (
    <section aria-labelledby={`${id}-label`}>
      <h3 id={`${id}-label`}>{label}</h3>
      <div class="editor" ref={place} />
      <p class="quiet">{children}</p>
      <div id={`${id}-faults`} class="faults" role="status">
        {places.value.map((fault) => (
          <p key={fault.pointer + fault.detail}>
            <button type="button" class="link" onClick={() => editor.value?.goTo(fault)}>
              <code>{fault.pointer === "" ? "document" : fault.pointer}</code>
            </button>{" "}
            <span class="bad">{fault.detail}</span>
          </p>
        ))}
      </div>
    </section>
  );
}
