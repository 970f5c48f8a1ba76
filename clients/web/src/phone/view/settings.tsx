// Who one is to the broker, alarms that are felt, and the end.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { showTheme, storedTheme, THEMES } from "../../shared/theme.js";
import type { Props } from "./app.js";
import { Dialog } from "./dialog.js";

export function SettingsDialog({ phone, close }: Props & { readonly close: () => void }): JSX.Element {
  const identity = phone.subscriber.value?.identity;
  const asked = useSignal(false);
  const theme = useSignal(storedTheme());
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
      <Notifications phone={phone} />
      <label class="check">
        <input
          type="checkbox"
          checked={phone.preferences.value.vibrate}
          onChange={({ currentTarget }) => phone.prefer({ vibrate: currentTarget.checked })}
        />
        Vibrate for alarms
      </label>
      <Install phone={phone} />
      <label class="row">
        <span>Colours</span>
        <select
          value={theme.value}
          onChange={({ currentTarget }) => {
            theme.value = THEMES.find((one) => one === currentTarget.value) ?? "system";
            showTheme(theme.value);
          }}
        >
          <option value="system">Same as this device</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
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
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}

/** Whether one is told of what comes while the page is closed. Why they are not there is said where they are switched on. */
function Notifications({ phone }: Props): JSX.Element {
  const state = phone.push.state.value;
  useEffect(() => {
    phone.pushWanted.value = true;
  }, []);
  const isThere = state.at !== "unknown" && state.at !== "unable";
  return (
    <div>
      <label class="check">
        <input
          type="checkbox"
          role="switch"
          checked={state.at === "on"}
          disabled={!isThere || state.at === "changing"}
          aria-describedby="notify"
          onChange={({ currentTarget }) => void phone.notify(currentTarget.checked)}
        />
        Notify me when this page is closed
      </label>
      <p id="notify" class={state.at === "failed" ? "warn" : "quiet"} role="status">
        {state.at === "unknown" && "Connect first: the broker says whether it can."}
        {(state.at === "unable" || state.at === "failed") && <bdi>{state.why}</bdi>}
      </p>
    </div>
  );
}

/** Puts the page on the home screen, where the browser does that for a page. */
function Install({ phone }: Props): JSX.Element | null {
  if (phone.shell.installable.value === undefined) return null;
  return (
    <div class="row">
      <span>Put this page on the home screen. It opens without a network, too.</span>
      <button type="button" onClick={() => void phone.shell.install()}>
        Install
      </button>
    </div>
  );
}
