// A new rule set, or another document and program for one that is there.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { DocumentField, EditSituation, SituationForm } from "../situations/edit.js";
import { EditorField } from "../situations/editor-field.js";
import { useSaving } from "../situations/save.js";
import { documentOf, EMPTY, EMPTY_PROGRAM, placesInProgram, type RuleSetShown } from "./rules.js";

const PROGRAM = "/program";

export function EditRules({ name }: { readonly name: string | undefined }) {
  return <EditSituation of={useConsole().rules} name={name} form={EditForm} />;
}

function EditForm({ shown }: { readonly shown?: RuleSetShown }) {
  const { rules } = useConsole();
  const name = useSignal(shown?.name ?? "");
  const program = useSignal(shown?.program ?? EMPTY_PROGRAM);
  const text = useSignal(JSON.stringify(shown === undefined ? EMPTY : documentOf(shown), null, 2));
  const saving = useSaving(rules, "an empty store");
  const { faults, save, read } = saving;
  const submit = async (): Promise<void> => {
    const { document } = read(text.value) ?? {};
    if (document === undefined) return;
    if (typeof document !== "object" || document === null || PROGRAM.slice(1) in document)
      faults.value = [{ pointer: "", detail: "has to be an object without `program`, which is below" }];
    else await save(name.value.trim(), { ...document, program: program.value }, shown !== undefined);
  };
  const [ofProgram, ofDocument] = [true, false].map((is) => faults.value.filter(({ pointer }) => (pointer === PROGRAM) === is));
  return (
    <SituationForm saving={saving} shown={shown} name={name} example="traffic" submit={submit}>
      <DocumentField text={text} faults={ofDocument ?? []}>
        <code>facts</code> says which events become facts, <code>publish</code> what is published of what the rules make.
      </DocumentField>
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
    </SituationForm>
  );
}
