// Asks for a JSON Web Token.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";

import { call } from "../../shared/http.js";
import { reasonOf, statusOf } from "../access.js";
import { useConsole } from "../context.js";
import { faultOf } from "./fault.js";

export function TokenDialog() {
  const { access, settings } = useConsole();
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const problem = useSignal<string | undefined>(undefined);
  const checking = useSignal(false);
  useSignalEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (access.asking.value === undefined) element.close();
    else if (!element.open) {
      text.value = "";
      problem.value = access.asking.value === "" ? undefined : access.asking.value;
      element.showModal();
      element.querySelector("textarea")?.focus();
    }
  });
  const check = async (): Promise<void> => {
    const token = text.value.trim();
    problem.value = faultOf(token, Date.now() / 1000);
    if (problem.value !== undefined) return;
    checking.value = true;
    try {
      // Any call will do: what counts is whether the broker takes the token at all.
      await call("v1/stats", token);
      access.use(token);
    } catch (error) {
      if (statusOf(error) === 403) access.use(token);
      else
        problem.value =
          statusOf(error) === 401 ? `The broker does not take it: ${reasonOf(error)}` : `It could not be tried: ${reasonOf(error)}`;
    } finally {
      checking.value = false;
    }
  };
  const held = access.claims.value;
  const close = (): void => void (access.asking.value = undefined);
  return (
    <dialog ref={dialog} class="token" aria-labelledby="token-title" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void check();
        }}
      >
        <h2 id="token-title">{settings.tokens ? "This broker wants a token" : "Token"}</h2>
        <p>A JSON Web Token says who you are and what you may do. Whoever runs the broker issues it; the broker itself does not.</p>
        <details>
          <summary>What its scopes permit here</summary>
          <dl class="pairs">
            <dt>subscribe</dt>
            <dd>the map, Try, and the client that the token is of (sub)</dd>
            <dt>publish</dt>
            <dd>test events</dd>
            <dt>admin</dt>
            <dd>any client, and who got an event; without a tenant also the list of clients and all figures</dd>
          </dl>
        </details>
        <div class="field">
          <label for="token">Token</label>
          <textarea
            id="token"
            rows={5}
            class="mono"
            spellcheck={false}
            autocomplete="off"
            aria-describedby="token-problem token-place"
            aria-invalid={problem.value !== undefined}
            value={text.value}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
          <p id="token-problem" class="bad" role="alert">
            {problem.value}
          </p>
          <p id="token-place" class="quiet">
            It stays in this tab and is forgotten with it.
          </p>
        </div>
        {held !== undefined && (
          <p class="quiet">
            Now in use: <bdi>{held.sub ?? "a token without sub"}</bdi>
            {held.tenant !== undefined && (
              <>
                {" "}
                of <bdi>{held.tenant}</bdi>
              </>
            )}
            , {held.scopes.length === 0 ? "no scope" : held.scopes.join(", ")}
            {held.exp !== undefined && `, ends ${new Date(held.exp * 1000).toLocaleString("en-GB")}`}
          </p>
        )}
        <div class="buttons">
          <button type="submit" class="primary" disabled={checking.value}>
            Use it
          </button>
          {access.token.value !== undefined && (
            <button type="button" onClick={() => access.use(undefined)}>
              Forget the one in use
            </button>
          )}
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </form>
    </dialog>
  );
}
