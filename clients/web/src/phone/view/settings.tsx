// Who one is to the broker, alarms that are felt, and the end.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import type { Props } from "./app.js";
import { Dialog } from "./dialog.js";

export function SettingsDialog({ phone, close }: Props & { readonly close: () => void }): JSX.Element {
  const identity = phone.subscriber.value?.identity;
  const asked = useSignal(false);
  const fault = useSignal<string | undefined>(undefined);
  const forget = async (): Promise<void> => {
    try {
      await phone.forget();
      close();
    } catch (error) {
      fault.value = `Not now: ${error instanceof Error ? error.message : String(error)}. Try again when you are connected.`;
    }
  };
  return (
    <Dialog title="Settings" close={close}>
      {identity !== undefined && (
        <dl>
          <div>
            <dt>Your name at the broker</dt>
            <dd class="mono">
              <bdi>{identity.client}</bdi>
            </dd>
          </div>
        </dl>
      )}
      {identity?.token !== undefined && (
        <button
          type="button"
          onClick={() => {
            close();
            phone.askForToken();
          }}
        >
          Use another token
        </button>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={phone.preferences.value.vibrate}
          onChange={({ currentTarget }) => phone.prefer({ vibrate: currentTarget.checked })}
        />
        Vibrate for alarms
      </label>
      <section aria-labelledby="forget">
        <h3 id="forget">Forget me</h3>
        <p class="quiet">
          Your place, your subscription and what waits for you at the broker are deleted, and so is all that this page keeps on this phone.
        </p>
        {asked.value ? (
          <>
            {/* Who taps twice in the same place keeps everything. */}
            <button type="button" onClick={() => (asked.value = false)}>
              No, keep me
            </button>
            <button type="button" class="danger" onClick={() => void forget()}>
              Yes, forget me
            </button>
          </>
        ) : (
          <button type="button" onClick={() => (asked.value = true)}>
            Forget me…
          </button>
        )}
        <p class="bad" role="status">
          {fault.value}
        </p>
      </section>
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}
