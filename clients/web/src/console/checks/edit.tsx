// A new check, of a preset or as a document, or another document for one that is there.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Fault } from "nearcast";

import { useConsole } from "../context.js";
import { Choices, DocumentField, EditSituation, OtherFaults, SituationForm, TextField } from "../situations/edit.js";
import { useSaving } from "../situations/save.js";
import { Numbers } from "../try/area.js";
import { missing } from "../try/shape.js";
import { ACTIONS, formulaText, type CheckShown } from "./formula.js";
import { presetDocument, presetFormula, PRESETS, presetWhole, type Preset, type Values } from "./presets.js";

const EMPTY = { contexts: { recent: { for_s: 60 } }, formula: { forall: "a", in: "recent", that: "a.speed >= 0" } };

export function EditCheck({ name }: { readonly name: string | undefined }) {
  return <EditSituation of={useConsole().checks} name={name} form={EditForm} />;
}

/** The members of a check that are its own, as they are sent. */
function documentOf({ contexts, formula, clock, on_violation }: CheckShown): object {
  return { contexts, formula, ...(clock === undefined ? {} : { clock }), ...(on_violation === undefined ? {} : { on_violation }) };
}

function EditForm({ shown }: { readonly shown?: CheckShown }) {
  const console = useConsole();
  const { checks, outline } = console;
  const name = useSignal(shown?.name ?? "");
  const preset = useSignal<Preset | undefined>(shown === undefined ? PRESETS[0] : undefined);
  const values = useSignal<Values>({});
  const clock = useSignal<"arrival" | "event">("arrival");
  const action = useSignal<keyof typeof ACTIONS>("tell");
  const text = useSignal(JSON.stringify(shown === undefined ? EMPTY : documentOf(shown), null, 2));
  const saving = useSaving(checks, "empty sets");
  const { faults, save, read } = saving;
  const corners = outline.shape.value.form === "polygon" ? outline.shape.value.corners : [];
  const chosen = preset.value;
  useEffect(() => () => void (outline.active.value = false), []);
  useEffect(() => {
    outline.active.value = chosen?.name === "outside";
  }, [chosen?.name]);
  const common = (): object => ({
    ...(clock.value === "arrival" ? {} : { clock: clock.value }),
    ...(action.value === "tell" ? {} : { on_violation: action.value }),
  });
  const submit = async (): Promise<void> => {
    const document = chosen === undefined ? read(text.value)?.document : { ...presetDocument(chosen, values.value, corners), ...common() };
    if (document === undefined) return;
    await save(name.value.trim(), document, shown !== undefined);
  };
  const asDocument = (): void => {
    if (chosen !== undefined) text.value = JSON.stringify({ ...presetWhole(chosen, values.value, corners), ...common() }, null, 2);
    preset.value = undefined;
    faults.value = [];
  };
  return (
    <SituationForm saving={saving} shown={shown} name={name} example="jump" submit={submit}>
      {shown === undefined && (
        <Choices
          label="Kind of check"
          choices={[...PRESETS.map((each) => [each, each.title] as const), [undefined, "Document"]]}
          chosen={chosen}
          choose={(choice) => {
            if (choice === undefined) asDocument();
            else preset.value = choice;
            faults.value = [];
          }}
        />
      )}
      {chosen === undefined ? (
        <DocumentField text={text} faults={faults.value}>
          <code>contexts</code> are sets of recent events, <code>formula</code> is what has to hold for them.
        </DocumentField>
      ) : (
        <>
          <p>{chosen.says}</p>
          <PresetFields preset={chosen} values={values.value} change={(changed) => (values.value = changed)} faults={faults.value} />
          <div class="pair">
            <div class="field">
              <label for="check-clock">Clock</label>
              <select
                id="check-clock"
                value={clock.value}
                onChange={({ currentTarget: { value } }) => (clock.value = value as "arrival" | "event")}
              >
                <option value="arrival">arrival of events</option>
                <option value="event">time of events</option>
              </select>
            </div>
            <div class="field">
              <label for="check-action">A violation is</label>
              <select
                id="check-action"
                value={action.value}
                onChange={({ currentTarget: { value } }) => (action.value = value as keyof typeof ACTIONS)}
              >
                <option value="tell">told</option>
                <option value="mark">told and marked</option>
                <option value="drop">refused</option>
              </select>
            </div>
          </div>
          <p class="quiet">Violations are {ACTIONS[action.value]}.</p>
          <h3 id="becomes">The formula that it becomes</h3>
          <pre class="mono" tabIndex={0} role="group" aria-labelledby="becomes">
            {formulaText(presetFormula(chosen, values.value, corners))}
          </pre>
          <button type="button" class="small" onClick={asDocument}>
            Change it as a document
          </button>
        </>
      )}
    </SituationForm>
  );
}

function PresetFields({
  preset,
  values,
  change,
  faults,
}: {
  readonly preset: Preset;
  readonly values: Values;
  readonly change: (values: Values) => void;
  readonly faults: readonly Fault[];
}) {
  const pointers = preset.fields.map(({ name }) => `/${name}`);
  return (
    <>
      {preset.fields.map(({ name, label, kind, example }) => (
        <TextField
          key={name}
          id={`check-${name}`}
          label={label}
          placeholder={example}
          required
          {...(kind === "attribute" ? { attributes: true, unknown: unknownAttribute } : { inputMode: "decimal" })}
          value={values[name] ?? ""}
          change={(changed) => change({ ...values, [name]: changed })}
          faults={faults.filter(({ pointer }) => pointer === `/${name}`).map(({ detail }) => detail)}
        />
      ))}
      {preset.name === "outside" && <OutlineField />}
      <OtherFaults faults={faults.filter(({ pointer }) => !pointers.includes(pointer))} />
    </>
  );
}

function unknownAttribute(written: string, known: readonly string[]): readonly string[] {
  const name = written.trim();
  return name === "" || known.includes(name) ? [] : [name];
}

/** The polygon that events are to be within. */
function OutlineField() {
  const console = useConsole();
  const { outline, outlining, settings } = console;
  const shape = outline.shape.value;
  const draws = outlining.value?.active.value !== undefined;
  return (
    <section aria-labelledby="outline">
      <h3 id="outline">Polygon</h3>
      {outlining.value !== undefined && (
        <button
          type="button"
          class="small"
          aria-pressed={draws}
          onClick={() => {
            if (draws) outlining.value?.finish();
            else outlining.value?.begin("polygon");
          }}
        >
          {draws ? "Done" : "Draw it on the map"}
        </button>
      )}
      {draws && (
        <p class="hint" role="status">
          Click the corners on the map; double-click, or Done, ends it.
        </p>
      )}
      <Numbers
        shape={shape}
        change={(changed) => (outline.shape.value = changed)}
        names={settings.world === "planar" ? ["x, m", "y, m"] : ["longitude", "latitude"]}
      />
      {shape.form === "polygon" && shape.corners.length === 0 && (
        <button type="button" class="small" onClick={() => (outline.shape.value = { form: "polygon", corners: [console.middle()] })}>
          Type its corners
        </button>
      )}
      <p class="quiet">{missing(shape) ?? "Drag its dots on the map, or change the numbers."}</p>
    </section>
  );
}
