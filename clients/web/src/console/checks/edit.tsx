// A new check, of a preset or as a document, or another document for one that is there.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Fault } from "nearcast";

import { useConsole } from "../context.js";
import { EditorField, NameField } from "../situations/editor-field.js";
import { placesInDocument, readDocument } from "../situations/pointers.js";
import { useSaving } from "../situations/save.js";
import { Numbers } from "../try/area.js";
import { missing } from "../try/shape.js";
import { ACTIONS, formulaText, type CheckShown } from "./formula.js";
import { presetDocument, presetFormula, PRESETS, presetWhole, type Preset, type Values } from "./presets.js";

const EMPTY = { contexts: { recent: { for_s: 60 } }, formula: { forall: "a", in: "recent", that: "a.speed >= 0" } };

export function EditCheck({ check }: { readonly check?: string }) {
  const { checks } = useConsole();
  const shown = check === undefined ? undefined : checks.get(check);
  if (check !== undefined && shown === undefined) return <p class="quiet">{checks.why.value ?? "Asking…"}</p>;
  return <EditForm {...(shown === undefined ? {} : { shown })} />;
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
  const { faults, problem, save } = useSaving(checks, "empty sets");
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
    let document: unknown = chosen === undefined ? undefined : { ...presetDocument(chosen, values.value, corners), ...common() };
    if (chosen === undefined) {
      const read = readDocument(text.value);
      if ("fault" in read) {
        faults.value = [{ pointer: "", detail: read.fault.detail }];
        return;
      }
      document = read.document;
    }
    await save(name.value.trim(), document, shown !== undefined);
  };
  const asDocument = (): void => {
    if (chosen !== undefined) text.value = JSON.stringify({ ...presetWhole(chosen, values.value, corners), ...common() }, null, 2);
    preset.value = undefined;
    faults.value = [];
  };
  return (
    <form
      id="edit-check"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {shown === undefined && (
        <>
          <NameField placeholder="jump" value={name.value} change={(changed) => (name.value = changed)} />
          <div class="forms" role="group" aria-label="Kind of check">
            {PRESETS.map((each) => (
              <button
                key={each.name}
                type="button"
                aria-pressed={chosen === each}
                onClick={() => {
                  preset.value = each;
                  faults.value = [];
                }}
              >
                {each.title}
              </button>
            ))}
            <button type="button" aria-pressed={chosen === undefined} onClick={asDocument}>
              Document
            </button>
          </div>
        </>
      )}
      {chosen === undefined ? (
        <EditorField
          id="document"
          label="Document"
          language="json"
          text={text.value}
          change={(changed) => (text.value = changed)}
          faults={faults.value}
          placesIn={placesInDocument}
        >
          <code>contexts</code> are sets of recent events, <code>formula</code> is what has to hold for them.
        </EditorField>
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
      {shown !== undefined && <p class="quiet">A check that is replaced begins with empty sets.</p>}
      <p class="bad" role="alert">
        {problem.value}
      </p>
      <button type="submit" class="primary">
        {shown === undefined ? "Put it in force" : "Replace it"}
      </button>
    </form>
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
  const { live } = useConsole();
  const known = live.attributes.list().map(({ name }) => name);
  const faultOf = (name: string): string | undefined => faults.find(({ pointer }) => pointer === `/${name}`)?.detail;
  const elsewhere = faults.filter(({ pointer }) => !preset.fields.some(({ name }) => pointer === `/${name}`));
  return (
    <>
      {preset.fields.map(({ name, label, kind, example }) => {
        const fault = faultOf(name);
        const value = values[name] ?? "";
        return (
          <div key={name} class="field">
            <label for={`check-${name}`}>{label}</label>
            <input
              id={`check-${name}`}
              autocomplete="off"
              placeholder={example}
              required
              {...(kind === "attribute" ? { list: "check-attributes" } : { inputMode: "decimal" as const })}
              aria-invalid={fault !== undefined}
              value={value}
              onInput={({ currentTarget }) => change({ ...values, [name]: currentTarget.value })}
            />
            {fault !== undefined && <span class="bad">{fault}</span>}
            {kind === "attribute" && value.trim() !== "" && known.length > 0 && !known.includes(value.trim()) && (
              <span class="warn">No event so far has {value.trim()}. Is it spelt like that?</span>
            )}
          </div>
        );
      })}
      <datalist id="check-attributes">
        {known.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {preset.name === "outside" && <OutlineField />}
      {elsewhere.map(({ pointer, detail }) => (
        <p key={pointer + detail} class="bad">
          <code>{pointer}</code> {detail}
        </p>
      ))}
    </>
  );
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
