// The list of clients.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { count, counted } from "../words.js";
import { stateOf } from "./list.js";

/** Rows that are shown at once. */
const ROWS = 100;

export function ClientsTab() {
  const console = useConsole();
  const { clients, access } = console;
  const search = useSignal("");
  const rows = useSignal(ROWS);
  const wanted = search.value.toLowerCase();
  const found = clients.list.value.filter(({ client }) => client.toLowerCase().includes(wanted));
  const { sub } = access.claims.value ?? {};
  return (
    <>
      <div class="field">
        <label for="search">Find a client by its name</label>
        <input
          id="search"
          type="search"
          autocomplete="off"
          value={search.value}
          onInput={({ currentTarget }) => (search.value = currentTarget.value)}
        />
      </div>
      {clients.why.value !== undefined && (
        <p class="warn">
          {clients.why.value}{" "}
          {sub !== undefined && clients.list.value.length === 0 && (
            <button type="button" class="link" onClick={() => console.open({ kind: "client", client: sub })}>
              Open <bdi>{sub}</bdi>
            </button>
          )}
        </p>
      )}
      {clients.list.value.length > 0 && (
        <>
          <p class="quiet" role="status">
            {found.length === clients.list.value.length
              ? counted(found.length, "client")
              : `${found.length} of ${clients.list.value.length} clients`}
            {clients.more.value && "; there are more than are listed"}, furthest behind first
          </p>
          {found.length === 0 && (
            <p>
              <button type="button" class="link" onClick={() => console.open({ kind: "client", client: search.value })}>
                Open <bdi>{search.value}</bdi> all the same
              </button>
            </p>
          )}
          <table class="clients">
            <thead>
              <tr>
                <th scope="col">Client</th>
                <th scope="col">State</th>
                <th scope="col" class="number">
                  <abbr title="subscriptions">Subs</abbr>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.slice(0, rows.value).map((each) => {
                const { word, why } = stateOf(each);
                return (
                  <tr key={each.client}>
                    <th scope="row">
                      <button type="button" class="link" onClick={() => console.open({ kind: "client", client: each.client })}>
                        <bdi>{each.client}</bdi>
                      </button>
                      {each.tenant !== undefined && (
                        <span class="quiet">
                          {" "}
                          of <bdi>{each.tenant}</bdi>
                        </span>
                      )}
                    </th>
                    <td>
                      <span class={`state ${word.replace(" ", "-")}`}>{word}</span> <span class="quiet numbers">{why}</span>
                    </td>
                    <td class="number numbers">{count(each.subscriptions)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {found.length > rows.value && (
            <button type="button" onClick={() => (rows.value += ROWS)}>
              Show {Math.min(ROWS, found.length - rows.value)} more
            </button>
          )}
        </>
      )}
    </>
  );
}
