// A piece of text that somebody takes along.

import { useSignal } from "@preact/signals";

/** For so long the button says that it has copied. */
const SAID_MS = 2000;

/** Copies a text, and says so; where the browser does not permit that, it says so, too. */
export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const said = useSignal<string | undefined>(undefined);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "Copied";
    } catch {
      said.value = "Select it to copy";
    }
    setTimeout(() => (said.value = undefined), SAID_MS);
  };
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      <span role="status">{said.value ?? label}</span>
    </button>
  );
}

/** A block of code with its button. */
export function CodeBlock({ text, name }: { readonly text: string; readonly name: string }) {
  return (
    <div class="code">
      <pre class="mono" tabIndex={0} role="group" aria-label={name}>
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  );
}
