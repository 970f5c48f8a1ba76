// The list of clients.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";
import { count, counted } from "../words.js";
import { stateOf, type ClientShown } from "./state.js";

/** Rows that are shown at once. */
const ROWS = 100;

type Order = "client" | "behind" | "subscriptions";
const COLUMNS: readonly (readonly [Order, string])[] = [
  ["client", "Client"],
  ["behind", "State"],
  ["subscriptions", "Subs"],
];

/** Clients in an order: by name; furthest behind first, and those that are connected before others; or with most subscriptions first. */
export function sorted(clients: readonly ClientShown[], order: Order): ClientShown[] {
  const late = ({ connections, behind, waiting_frames, kept_matches }: ClientShown): number =>
    Math.max(behind, waiting_frames) * 1e6 + kept_matches * 10 + Math.min(connections, 9);
  return [...clients].sort((one, other) => {
    const first = order === "behind" ? late(other) - late(one) : order === "subscriptions" ? other.subscriptions - one.subscriptions : 0;
    return first === 0 ? one.client.localeCompare(other.client, "en", { numeric: true }) : first;
  });
}

export function ClientsTab() {
  const console = useConsole();
  const { clients, access } = console;
  const search = useSignal("");
  const rows = useSignal(ROWS);
  const wanted = search.value.toLowerCase();
  const order = useSignal<Order>("behind");
  const found = sorted(
    clients.list.value.filter(({ client }) => client.toLowerCase().includes(wanted)),
    order.value,
  );
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
            {clients.more.value && "; there are more than are listed"}
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
                {COLUMNS.map(([column, label]) => (
                  <th
                    key={column}
                    scope="col"
                    class={column === "subscriptions" ? "number" : ""}
                    aria-sort={order.value === column ? (column === "client" ? "ascending" : "descending") : "none"}
                  >
                    <button type="button" class="sort" onClick={() => (order.value = column)}>
                      {label}
                      <span aria-hidden="true">{order.value === column ? (column === "client" ? " ↑" : " ↓") : ""}</span>
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {found.slice(0, rows.value).map((each) => {
                const { word, why } = stateOf(each);
                return (
                  <tr key={each.client}>
                    <th scope="row" title={each.client}>
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
                    <td title={`${word} ${why}`}>
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
