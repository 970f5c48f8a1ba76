// Which events are of one object, and so one mark.

import { useSignal } from "@preact/signals";

import { useConsole } from "../context.js";

/** What counts as one thing on the map. */
export function ObjectChoice() {
  const console = useConsole();
  const { live } = console;
  const chosen = useSignal(live.objects.attribute ?? "");
  const names = useSignal(live.attributes.list());
  // The list is made anew when somebody is about to choose.
  const renew = (): void => void (names.value = live.attributes.list());
  return (
    <div class="field">
      <label for="object">One mark per</label>
      <select
        id="object"
        value={chosen.value}
        onPointerDown={renew}
        onFocus={renew}
        onChange={({ currentTarget: { value } }) => {
          chosen.value = value;
          console.tellApartBy(value === "" ? undefined : value);
        }}
      >
        <option value="">key of the event</option>
        {[...new Set([chosen.value, ...names.value.map(({ name }) => name)])]
          .filter((name) => name !== "")
          .map((name) => (
            <option key={name} value={name}>
              key or {name}
            </option>
          ))}
      </select>
    </div>
  );
}
