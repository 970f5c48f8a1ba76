// A new group definition, or another one in its place: as a form, or as a document.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { areaWords, type AreaShown } from "../map/areas.js";
import { Choices, DocumentField, EditSituation, OtherFaults, SituationForm, TextField } from "../situations/edit.js";
import { useSaving } from "../situations/save.js";
import { unknownNames } from "../try/completion.js";
import { metres } from "../words.js";
import { BLANK, CONDITIONS, documentOf, draftFaults, draftOf, faultsOf, RIDERS_AND_TAXIS, ROLES, type Draft } from "./draft.js";
import type { GroupDefinitionShown } from "./groups.js";

type Way = "preset" | "own" | "form" | "document";
const NEW: readonly (readonly [Way, string])[] = [
  ["preset", "Riders and taxis"],
  ["own", "Own roles"],
  ["document", "Document"],
];
const OLD: readonly (readonly [Way, string])[] = [
  ["form", "Form"],
  ["document", "Document"],
];

export function EditGroups({ name }: { readonly name: string | undefined }) {
  return <EditSituation of={useConsole().groups} name={name} form={EditForm} />;
}

/** The members of a definition that are its own, as they are sent. */
function ownOf({ roles, where, limit, order }: GroupDefinitionShown): object {
  return { roles, where, limit, ...(order === undefined ? {} : { order }) };
}

function EditForm({ shown }: { readonly shown?: GroupDefinitionShown }) {
  const { groups } = useConsole();
  const name = useSignal(shown?.name ?? "");
  const begun = shown === undefined ? RIDERS_AND_TAXIS : draftOf(ownOf(shown));
  const draft = useSignal<Draft>(begun ?? BLANK);
  const way = useSignal<Way>(shown === undefined ? "preset" : begun === undefined ? "document" : "form");
  const text = useSignal(JSON.stringify(shown === undefined ? {} : ownOf(shown), null, 2));
  const saving = useSaving(groups, "no groups, and gets all live objects");
  const { faults, problem, save, read } = saving;
  const submit = async (): Promise<void> => {
    if (way.value === "document") {
      const found = read(text.value);
      if (found !== undefined) await save(name.value.trim(), found.document, shown !== undefined);
      return;
    }
    const own = draftFaults(draft.value);
    if (own.length > 0) faults.value = own;
    else await save(name.value.trim(), documentOf(draft.value), shown !== undefined);
  };
  const choose = (choice: Way): void => {
    faults.value = [];
    problem.value = undefined;
    if (choice === "document" && way.value !== "document") text.value = JSON.stringify(documentOf(draft.value), null, 2);
    if (choice === "preset") draft.value = RIDERS_AND_TAXIS;
    else if (choice === "own") draft.value = BLANK;
    else if (choice === "form" && way.value === "document") {
      const found = read(text.value);
      if (found === undefined) return;
      const taken = draftOf(found.document);
      if (taken === undefined) {
        problem.value = "The form cannot show all of this document.";
        return;
      }
      draft.value = taken;
    }
    way.value = choice;
  };
  return (
    <SituationForm saving={saving} shown={shown} name={name} example="pickup" submit={submit}>
      <Choices
        label={shown === undefined ? "Kind of group definition" : "How it is written"}
        choices={shown === undefined ? NEW : OLD}
        chosen={way.value}
        choose={choose}
      />
      {way.value === "document" ? (
        <DocumentField text={text} faults={faults.value}>
          <code>roles</code> says which live objects are candidates, <code>where</code> what has to hold between them.
        </DocumentField>
      ) : (
        <DraftFields draft={draft.value} change={(changed) => (draft.value = changed)} faults={faultsOf(draft.value, faults.value)} />
      )}
    </SituationForm>
  );
}

function DraftFields({
  draft,
  change,
  faults,
}: {
  readonly draft: Draft;
  readonly change: (draft: Draft) => void;
  readonly faults: ReturnType<typeof faultsOf>;
}) {
  const { roles, where, limit, order } = draft;
  return (
    <>
      <section aria-labelledby="roles">
        <h3 id="roles">Roles</h3>
        <p class="quiet">
          Live objects whose newest event satisfies its condition. A group is told at the place of the first role’s object.
        </p>
        {roles.map((role, at) => {
          const set = (changed: object): void => change({ ...draft, roles: changedAt(roles, at, { ...role, ...changed }) });
          return (
            <fieldset key={at} class="role">
              <legend class="visually-hidden">Role {at + 1}</legend>
              <TextField
                id={`role-${at}`}
                label={`Role ${at + 1}`}
                required
                placeholder={RIDERS_AND_TAXIS.roles[at]?.name ?? "stand"}
                value={role.name}
                change={(changed) => set({ name: changed })}
                faults={faults.roles[at]?.name ?? []}
              />
              <TextField
                id={`role-${at}-where`}
                label={`Condition of role ${at + 1}`}
                class="mono"
                placeholder={RIDERS_AND_TAXIS.roles[at]?.where ?? "type = 'stand'"}
                unknown={(written, known) => unknownNames(written, new Set(known))}
                value={role.where}
                change={(changed) => set({ where: changed })}
                faults={faults.roles[at]?.where ?? []}
              />
              {role.area !== undefined && (
                <p class="quiet">Its area stays: {areaWords(role.area as AreaShown, metres)}. The document can change it.</p>
              )}
              {roles.length > 1 && (
                <button type="button" class="small" onClick={() => change({ ...draft, roles: roles.filter((_, each) => each !== at) })}>
                  Remove role {at + 1}
                </button>
              )}
            </fieldset>
          );
        })}
        {roles.length < ROLES && (
          <button type="button" class="small" onClick={() => change({ ...draft, roles: [...roles, { name: "", where: "" }] })}>
            Add a role
          </button>
        )}
      </section>
      <section aria-labelledby="conditions">
        <h3 id="conditions">Conditions between roles</h3>
        <p class="quiet">Each is over one or two roles, such as {RIDERS_AND_TAXIS.where[0]}. All have to hold.</p>
        {where.map((condition, at) => (
          <div key={at} class="condition">
            <TextField
              id={`condition-${at}`}
              label={`Condition ${at + 1}`}
              class="mono"
              value={condition}
              change={(changed) => change({ ...draft, where: changedAt(where, at, changed) })}
              faults={faults.where[at] ?? []}
            />
            <button
              type="button"
              class="small"
              aria-label={`Remove condition ${at + 1}`}
              onClick={() => change({ ...draft, where: where.filter((_, each) => each !== at) })}
            >
              Remove
            </button>
          </div>
        ))}
        {where.length < CONDITIONS && (
          <button type="button" class="small" onClick={() => change({ ...draft, where: [...where, ""] })}>
            Add a condition
          </button>
        )}
      </section>
      <TextField
        id="group-order"
        label="Order"
        class="mono"
        placeholder="the names of the objects"
        value={order}
        change={(changed) => change({ ...draft, order: changed })}
        faults={faults.order}
      />
      <TextField
        id="group-limit"
        label="Limit"
        inputMode="numeric"
        placeholder="100"
        value={limit}
        change={(changed) => change({ ...draft, limit: changed })}
        faults={faults.limit}
      />
      <p class="quiet">The first groups in this order, the least number first, are told.</p>
      <OtherFaults faults={faults.others} />
    </>
  );
}

function changedAt<Each>(list: readonly Each[], at: number, changed: Each): readonly Each[] {
  return list.map((each, index) => (index === at ? changed : each));
}
