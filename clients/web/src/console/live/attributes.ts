// The attributes that events have had: their kinds and some of their values, for completion and for the choice of what names an object.

export type Kind = "number" | "text" | "truth value";

export interface AttributeSeen {
  readonly name: string;
  readonly kinds: readonly Kind[];
  /** Some of the values, the first ones that were seen. */
  readonly values: readonly (string | number | boolean)[];
}

const ATTRIBUTES = 200;
const VALUES = 20;
const TEXT = 60;
const DEPTH = 16;

interface Known {
  readonly kinds: Set<Kind>;
  readonly values: Set<string | number | boolean>;
}

/** Bounded: 200 names, 20 values of each. */
export class Attributes {
  readonly #known = new Map<string, Known>();

  /** By name. */
  list(): AttributeSeen[] {
    return [...this.#known]
      .map(([name, { kinds, values }]) => ({ name, kinds: [...kinds], values: [...values] }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Learns from an event's properties; objects in them are flattened as the broker does it. */
  learn(properties: Readonly<Record<string, unknown>> | null | undefined, prefix = "", depth = 0): void {
    if (depth > DEPTH) return;
    for (const [name, value] of Object.entries(properties ?? {})) this.#learn(prefix + name, value, depth);
  }

  #learn(name: string, value: unknown, depth: number): void {
    if (Array.isArray(value)) {
      for (const element of value.slice(0, VALUES)) this.#learn(name, element, depth + 1);
    } else if (typeof value === "object" && value !== null) {
      this.learn(value as Record<string, unknown>, `${name}.`, depth + 1);
    } else if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") {
      let known = this.#known.get(name);
      if (known === undefined) {
        if (this.#known.size >= ATTRIBUTES) return;
        this.#known.set(name, (known = { kinds: new Set(), values: new Set() }));
      }
      known.kinds.add(typeof value === "number" ? "number" : typeof value === "string" ? "text" : "truth value");
      if (known.values.size < VALUES && String(value).length <= TEXT) known.values.add(value);
    }
  }
}
