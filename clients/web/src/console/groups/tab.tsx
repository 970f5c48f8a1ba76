// The list of group definitions.

import { useConsole } from "../context.js";
import { SituationsTab } from "../situations/tab.js";
import { counted } from "../words.js";
import { definitionLine, type GroupDefinitionShown } from "./groups.js";

export function GroupsTab() {
  const { groups } = useConsole();
  return (
    <SituationsTab
      of={groups}
      title="Groups"
      says="A group definition finds live objects that fit together, one for each role: a free taxi and a rider near it whose party fits in."
      none={
        <>
          <strong>No group definitions yet.</strong> Begin with riders and taxis.
        </>
      }
      lineOf={definitionLine}
    >
      {(shown) => <RolesFacts shown={shown} />}
    </SituationsTab>
  );
}

/** How many groups there are, and how many objects of each role may be in one. */
export function RolesFacts({ shown: { roles, groups, activity } }: { readonly shown: GroupDefinitionShown }) {
  const { candidates, consistent } = activity;
  return (
    <>
      <p>
        <strong data-fact="groups">{groups === undefined ? "It has not begun yet" : counted(groups.length, "group")}</strong>
      </p>
      {candidates !== undefined && (
        <table class="roles numbers">
          <thead>
            <tr>
              <th scope="col">role</th>
              <th scope="col">candidates</th>
              <th scope="col">
                <abbr title="with a partner in every role that shares a condition with it">consistent</abbr>
              </th>
            </tr>
          </thead>
          <tbody>
            {Object.keys(roles).map((role) => (
              <tr key={role}>
                <th scope="row">
                  <bdi>{role}</bdi>
                </th>
                <td data-fact={`candidates ${role}`}>{candidates[role]?.toLocaleString("en")}</td>
                <td data-fact={`consistent ${role}`}>{consistent?.[role]?.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
