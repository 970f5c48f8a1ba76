// A new check, rule set or group definition, or another document for one that is there.

import type { Signal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import type { Fault } from "nearcast";

import { useConsole } from "../context.js";
import { EditorField } from "./editor-field.js";
import { NOUNS, type Situation, type Situations } from "./list.js";
import { placesInDocument } from "./pointers.js";
import type { Saving } from "./save.js";

/** Waits for the one that is to be changed. */
export function EditSituation<Shown extends Situation>({
  of,
  name,
  form: Form,
}: {
  readonly of: Situations<Shown>;
  readonly name: string | undefined;
  readonly form: ComponentType<{ readonly shown?: Shown }>;
}) {
  const shown = name === undefined ? undefined : of.get(name);
  if (name !== undefined && shown === undefined) return <p class="quiet">{of.why.value ?? "Asking…"}</p>;
  return <Form {...(shown === undefined ? {} : { shown })} />;
}

/** The frame of a form: above the name of a new one, below what is wrong, and the button. */
export function SituationForm<Shown extends Situation>({
  saving: { of, empty, problem },
  shown,
  name,
  example,
  submit,
  children,
}: {
  readonly saving: Saving<Shown>;
  readonly shown: Shown | undefined;
  readonly name: Signal<string>;
  readonly example: string;
  readonly submit: () => Promise<void>;
  readonly children: ComponentChildren;
}) {
  return (
    <form
      id={`edit-${of.kind}`}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {shown === undefined && (
        <div class="field">
          <label for="situation-name">Name</label>
          <input
            id="situation-name"
            required
            autocomplete="off"
            placeholder={example}
            value={name.value}
            onInput={({ currentTarget }) => (name.value = currentTarget.value)}
          />
        </div>
      )}
      {children}
      {shown !== undefined && (
        <p class="quiet">
          A {NOUNS[of.kind]} that is replaced begins with {empty}.
        </p>
      )}
      <p class="bad" role="alert">
        {problem.value}
      </p>
      <button type="submit" class="primary">
        {shown === undefined ? "Put it in force" : "Replace it"}
      </button>
    </form>
  );
}

/** One of several ways to write it. */
export function Choices<Choice>({
  label,
  choices,
  chosen,
  choose,
}: {
  readonly label: string;
  readonly choices: readonly (readonly [Choice, string])[];
  readonly chosen: Choice;
  readonly choose: (choice: Choice) => void;
}) {
  return (
    <div class="forms" role="group" aria-label={label}>
      {choices.map(([choice, title]) => (
        <button key={title} type="button" aria-pressed={choice === chosen} onClick={() => choose(choice)}>
          {title}
        </button>
      ))}
    </div>
  );
}

/** The whole document, to be written. */
export function DocumentField({
  text,
  faults,
  children,
}: {
  readonly text: Signal<string>;
  readonly faults: readonly Fault[];
  /** What is said of it. */
  readonly children: ComponentChildren;
}) {
  return (
    <EditorField
      id="document"
      label="Document"
      language="json"
      text={text.value}
      change={(changed) => (text.value = changed)}
      faults={faults}
      placesIn={placesInDocument}
    >
      {children}
    </EditorField>
  );
}

/** A field for a line, with what is wrong with it. */
export function TextField({
  id,
  label,
  value,
  change,
  faults,
  attributes = false,
  unknown,
  ...rest
}: {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
  readonly faults: readonly string[];
  /** Names of attributes that were seen are offered. */
  readonly attributes?: boolean;
  /** Of what was written, attributes that no event has had. */
  readonly unknown?: (value: string, known: readonly string[]) => readonly string[];
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly inputMode?: "decimal" | "numeric";
  readonly class?: string;
}) {
  const { live } = useConsole();
  const known = attributes || unknown !== undefined ? live.attributes.list().map(({ name }) => name) : [];
  const strange = known.length === 0 ? [] : (unknown?.(value, known) ?? []);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        autocomplete="off"
        {...rest}
        {...(attributes ? { list: `${id}-attributes` } : {})}
        aria-invalid={faults.length > 0}
        aria-describedby={faults.length > 0 ? `${id}-faults` : undefined}
        value={value}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      {attributes && (
        <datalist id={`${id}-attributes`}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
      {faults.length > 0 && (
        <span id={`${id}-faults`} class="bad">
          {faults.join("; ")}
        </span>
      )}
      {strange.length > 0 && <span class="warn">No event so far has {strange.join(", ")}. Is it spelt like that?</span>}
    </div>
  );
}

/** Faults that no field of a form shows. */
export function OtherFaults({ faults }: { readonly faults: readonly Fault[] }) {
  return (
    <>
      {faults.map(({ pointer, detail }) => (
        <p key={pointer + detail} class="bad">
          <code>{pointer}</code> {detail}
        </p>
      ))}
    </>
  );
}
