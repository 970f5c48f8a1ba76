// A new rule set, or another document and program for one that is there.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { EditorField, NameField } from "../situations/editor-field.js";
import { placesInDocument, readDocument } from "../situations/pointers.js";
import { useSaving } from "../situations/save.js";
import { documentOf, EMPTY, EMPTY_PROGRAM, placesInProgram, type RuleSetShown } from "./rules.js";

const PROGRAM = "/program";

export function EditRules({ name }: { readonly name?: string }) {
  const { rules } = useConsole();
  const shown = name === undefined ? undefined : rules.get(name);
  if (name !== undefined && shown === undefined) return <p class="quiet">{rules.why.value ?? "Asking…"}</p>;
  return <EditForm {...(shown === undefined ? {} : { shown })} />;
}

function EditForm({ shown }: { readonly shown?: RuleSetShown }) {
  const { rules } = useConsole();
  const name = useSignal(shown?.name ?? "");
  const program = useSignal(shown?.program ?? EMPTY_PROGRAM);
  const text = useSignal(JSON.stringify(shown === undefined ? EMPTY : documentOf(shown), null, 2));
  const { faults, problem, save } = useSaving(rules, "an empty store");
  const submit = async (): Promise<void> => {
    const read = readDocument(text.value);
    if ("fault" in read) faults.value = [{ pointer: "", detail: read.fault.detail }];
    else if (typeof read.document !== "object" || read.document === null || PROGRAM.slice(1) in read.document)
      faults.value = [{ pointer: "", detail: "has to be an object without `program`, which is below" }];
    else await save(name.value.trim(), { ...read.document, program: program.value }, shown !== undefined);
  };
  const [ofProgram, ofDocument] = [true, false].map((is) => faults.value.filter(({ pointer }) => (pointer === PROGRAM) === is));
  return (
    <form
      id="edit-rules"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {shown === undefined && <NameField placeholder="traffic" value={name.value} change={(changed) => (name.value = changed)} />}
      <EditorField
        id="document"
        label="Document"
        language="json"
        text={text.value}
        change={(changed) => (text.value = changed)}
        faults={ofDocument ?? []}
        placesIn={placesInDocument}
      >
        <code>facts</code> says which events become facts, <code>publish</code> what is published of what the rules make.
      </EditorField>
      <EditorField
        id="program"
        label="Program"
        language="chr"
        text={program.value}
        change={(changed) => (program.value = changed)}
        faults={ofProgram ?? []}
        placesIn={placesInProgram}
      >
        Constraint Handling Rules: <code>kept \ removed &lt;=&gt; guard | body.</code>
      </EditorField>
      {shown !== undefined && <p class="quiet">A rule set that is replaced begins with an empty store.</p>}
      <p class="bad" role="alert">
        {problem.value}
      </p>
      <button type="submit" class="primary">
        {shown === undefined ? "Put it in force" : "Replace it"}
      </button>
    </form>
  );
}
