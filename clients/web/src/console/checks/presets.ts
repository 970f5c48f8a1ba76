// The presets: what is asked for each, and the formula that the broker makes of it (checks/src/presets.rs).

import type { Place } from "../../shared/map/plane.js";
import type { Formula } from "./formula.js";

export type PresetName = "speed" | "accuracy" | "frozen" | "outside" | "duplicate";

export interface Field {
  readonly name: "object" | "property" | "max_m_per_s" | "max_m" | "within_m" | "for_s";
  readonly label: string;
  readonly kind: "attribute" | "number";
  readonly example: string;
}

export interface Preset {
  readonly name: PresetName;
  readonly title: string;
  readonly says: string;
  readonly fields: readonly Field[];
}

const OBJECT: Field = { name: "object", label: "Attribute that names the object", kind: "attribute", example: "taxi_id" };

export const PRESETS: readonly Preset[] = [
  {
    name: "speed",
    title: "Speed",
    says: "No object is faster than this between two of its reports of a minute.",
    fields: [OBJECT, { name: "max_m_per_s", label: "At most, m/s", kind: "number", example: "55" }],
  },
  {
    name: "accuracy",
    title: "Accuracy",
    says: "The accuracy that an event states is at most this distance.",
    fields: [
      { name: "property", label: "Attribute with the metres", kind: "attribute", example: "accuracy_m" },
      { name: "max_m", label: "At most, m", kind: "number", example: "100" },
    ],
  },
  {
    name: "frozen",
    title: "Frozen",
    says: "No object reports the very same place for so long.",
    fields: [OBJECT, { name: "for_s", label: "For, seconds", kind: "number", example: "600" }],
  },
  { name: "outside", title: "Outside", says: "Events are within a polygon.", fields: [] },
  {
    name: "duplicate",
    title: "Duplicate",
    says: "No object reports twice within this distance and time.",
    fields: [
      OBJECT,
      { name: "within_m", label: "Within, m", kind: "number", example: "5" },
      { name: "for_s", label: "and seconds", kind: "number", example: "2" },
    ],
  },
];

export type Values = Readonly<Partial<Record<Field["name"], string>>>;

/** The members of the document; what is no number yet stays away, and the broker says so. */
export function presetDocument(preset: Preset, values: Values, corners: readonly Place[]): Record<string, unknown> {
  const members = preset.fields.map(({ name, kind }): [string, unknown] => {
    const text = (values[name] ?? "").trim();
    return [name, kind === "attribute" ? text : text === "" || Number.isNaN(Number(text)) ? undefined : Number(text)];
  });
  const polygon = preset.name === "outside" ? { polygon: { type: "Polygon", coordinates: [closed(corners)] } } : {};
  return { preset: preset.name, ...Object.fromEntries(members.filter(([, value]) => value !== undefined && value !== "")), ...polygon };
}

/** The formula that a preset becomes; what was not written yet stands as `…`. */
export function presetFormula({ name }: Preset, values: Values, corners: readonly Place[]): Formula {
  const value = (field: Field["name"]): string => (values[field] ?? "").trim() || "…";
  const of = (variable: string, field: "object" | "property"): string => `${variable}.${attributeText(value(field))}`;
  const every = (variable: string, that: Formula): Formula => ({ forall: variable, in: "recent", that });
  const same = `${of("a", "object")} = ${of("b", "object")}`;
  switch (name) {
    case "speed":
      return every("a", every("b", { implies: [`${same} AND ELAPSED(a, b) > 0`, `SPEED(a, b) <= ${value("max_m_per_s")}`] }));
    case "accuracy":
      return every("a", { not: `${of("a", "property")} > ${value("max_m")}` });
    case "frozen":
      return every(
        "a",
        every("b", {
          implies: [
            `${same} AND ELAPSED(a, b) >= ${value("for_s")} AND DISTANCE(a, b) = 0`,
            {
              exists: "c",
              in: "recent",
              that: `${of("c", "object")} = ${of("a", "object")} AND ELAPSED(a, c) > 0 AND (ELAPSED(c, b) >= ${value("for_s")} OR ELAPSED(c, b) > 0 AND DISTANCE(a, c) > 0)`,
            },
          ],
        }),
      );
    case "outside":
      return every(
        "a",
        `a.type = 'violation' OR S_WITHIN(a, POLYGON((${closed(corners)
          .map(([x, y]) => `${x} ${y}`)
          .join(", ")})))`,
      );
    case "duplicate":
      return every(
        "a",
        every("b", { implies: [`${same} AND ELAPSED(a, b) >= 0 AND DISTANCE(a, b) <= ${value("within_m")}`, "SAME(a, b)"] }),
      );
  }
}

/** A ring ends where it begins. */
function closed(corners: readonly Place[]): readonly Place[] {
  const [first] = corners;
  return first === undefined ? [] : [...corners, first];
}

function attributeText(name: string): string {
  return name === "…" || /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The whole document that a preset stands for, to be changed. */
export function presetWhole(preset: Preset, values: Values, corners: readonly Place[]): Record<string, unknown> {
  const seconds = Number(values.for_s ?? "") || 0;
  const for_s = { speed: 60, accuracy: 0, frozen: 2 * seconds, outside: 0, duplicate: seconds }[preset.name];
  return { contexts: { recent: { for_s } }, formula: presetFormula(preset, values, corners) };
}
