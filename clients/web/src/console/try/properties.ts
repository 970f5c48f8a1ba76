// Properties of a test event, written as rows of a name and a value.

export interface Row {
  readonly name: string;
  readonly value: string;
}

/** What a value that was written is taken for: JSON where it is some, else a text. */
export function guess(text: string): { readonly kind: "number" | "text" | "truth value" | "absent" | "JSON"; readonly value: unknown } {
  const trimmed = text.trim();
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    return { kind: "text", value: text };
  }
  if (typeof value === "number") return Number.isFinite(value) ? { kind: "number", value } : { kind: "text", value: text };
  if (typeof value === "string") return { kind: "text", value };
  if (typeof value === "boolean") return { kind: "truth value", value };
  return value === null ? { kind: "absent", value } : { kind: "JSON", value };
}

/** Rows as properties; rows without a name are left out. Tells of a name that is there twice. */
export function propertiesOf(rows: readonly Row[]): { readonly properties: Record<string, unknown>; readonly twice: string | undefined } {
  const properties = new Map<string, unknown>();
  let twice: string | undefined;
  for (const { name, value } of rows) {
    if (name.trim() === "") continue;
    if (properties.has(name.trim())) twice = name.trim();
    properties.set(name.trim(), guess(value).value);
  }
  // Not `{}[name] =`, which a name like `__proto__` would not survive.
  return { properties: Object.fromEntries(properties), twice };
}
