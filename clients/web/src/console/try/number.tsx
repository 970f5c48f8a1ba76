import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";

/** A number that is also changed elsewhere. What is not (yet) a number is marked, and not told. */
export function NumberField({
  label,
  value,
  min,
  change,
}: {
  readonly label: string;
  readonly value: number;
  readonly min?: number;
  readonly change: (value: number) => void;
}) {
  const id = useId();
  const text = useSignal(String(value));
  const fits = (number: number): boolean => Number.isFinite(number) && (min === undefined || number >= min);
  const written = text.value.trim() === "" ? NaN : Number(text.value);
  // Drawn meanwhile: the field follows.
  const told = useSignal(value);
  if (told.value !== value) {
    told.value = value;
    if (written !== value) text.value = String(value);
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        inputMode="decimal"
        autocomplete="off"
        class="numbers"
        aria-invalid={!fits(written)}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          const number = currentTarget.value.trim() === "" ? NaN : Number(currentTarget.value);
          if (!fits(number)) return;
          told.value = number;
          change(number);
        }}
      />
      {!fits(written) && <span class="bad">{min === undefined ? "not a number" : `not a number from ${min}`}: the one before holds</span>}
    </div>
  );
}
