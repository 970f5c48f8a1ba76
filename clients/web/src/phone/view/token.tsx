// Asks for a token, where the broker wants one.

import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { claimsOf } from "../../shared/token.js";
import type { Props } from "./app.js";
import { Dialog } from "./dialog.js";

export function TokenDialog({ phone }: Props): JSX.Element | null {
  const stage = phone.stage.value;
  const closed = useSignal<typeof stage | undefined>(undefined);
  const text = useSignal("");
  const taken = stage.at === "running" && phone.subscriber.value?.link.value.at === "online";
  useEffect(() => {
    if (taken) text.value = "";
  }, [taken]);
  if (stage.at !== "token" || closed.value === stage) return null;
  const close = (): void => {
    closed.value = stage;
    if (stage.running === true) phone.stage.value = { at: "running" };
  };
  return <Asking key={stage.why ?? ""} phone={phone} why={stage.why} text={text} close={close} />;
}

interface AskingProps extends Props {
  readonly why: string | undefined;
  /** What was given; it stays after a refusal, to be mended. */
  readonly text: Signal<string>;
  readonly close: () => void;
}

function Asking({ phone, why, text, close }: AskingProps): JSX.Element {
  const fault = useSignal(why);
  const use = (): void => {
    const claims = claimsOf(text.value);
    if (claims === undefined) fault.value = "This is no JSON Web Token: it has three parts with dots between.";
    else if (claims.sub === undefined) fault.value = "This token does not say who you are: it has no claim “sub”.";
    else if (claims.exp !== undefined && claims.exp * 1000 <= Date.now()) fault.value = "This token has ended. Ask for a new one.";
    else void phone.useToken(text.value.trim());
  };
  return (
    <Dialog title="Who are you?" close={close}>
      <p>This broker wants a token that says who you are and that you may subscribe. You get one from whoever runs it.</p>
      <label for="token">Token</label>
      <textarea
        id="token"
        class="mono"
        rows={4}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby="token-fault"
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <p id="token-fault" class="bad" role="status">
        {fault.value !== undefined && <bdi>{fault.value}</bdi>}
      </p>
      <p class="quiet">It is kept for this tab only.</p>
      <button type="button" class="primary" onClick={use}>
        Go on
      </button>
    </Dialog>
  );
}
