// What: conditions of subscriptions, written as CQL2 text. docs/semantics.md of the broker has their meaning.

/** What an attribute can be compared with. */
export type Value = string | number | boolean;

const KEYWORDS = new Set(["and", "or", "not", "between", "in", "like", "is", "null", "true", "false", "casei"]);
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_.]*$/;

function name(attribute: string): string {
  if (PLAIN_NAME.test(attribute) && !KEYWORDS.has(attribute.toLowerCase())) return attribute;
  return `"${attribute.replaceAll('"', '""')}"`;
}

function literal(value: Value): string {
  switch (typeof value) {
    case "string":
      // A backslash before a quote would escape it. U&'..' has a spelling for backslashes, too.
      if (value.endsWith("\\") || value.includes("\\'")) {
        return `U&'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
      }
      return `'${value.replaceAll("'", "''")}'`;
    case "boolean":
      return value ? "TRUE" : "FALSE";
    case "number":
      if (!Number.isFinite(value)) throw new RangeError(`${value} is no number that a condition can have`);
      return JSON.stringify(value);
    default:
      throw new TypeError(`a condition holds texts, numbers and truth values, not ${typeof value}`);
  }
}

/** What it is that parentheses may be needed around. */
type Shape = "constraint" | "and" | "or" | "not";

/** A condition on the attributes of events. It is immutable; `String(condition)` is its CQL2 text. */
export class Condition {
  readonly #text: string;
  readonly #shape: Shape;

  /** @internal */
  constructor(text: string, shape: Shape) {
    this.#text = text;
    this.#shape = shape;
  }

  /** True where this condition and all of the others are. */
  and(...others: readonly Condition[]): Condition {
    return and(this, ...others);
  }

  /** True where this condition or one of the others is. */
  or(...others: readonly Condition[]): Condition {
    return or(this, ...others);
  }

  /** True where this condition is false. What is unknown, such as a comparison with an absent attribute, stays unknown and does not match. */
  not(): Condition {
    return not(this);
  }

  toString(): string {
    return this.#text;
  }

  /** The text, since that is what goes over the wire. */
  toJSON(): string {
    return this.#text;
  }

  /** @internal The text as a part of something in which `loose` shapes need parentheses. */
  within(...loose: readonly Shape[]): string {
    return loose.includes(this.#shape) ? `(${this.#text})` : this.#text;
  }
}

/** True where all of the conditions are. */
export function and(first: Condition, ...others: readonly Condition[]): Condition {
  if (others.length === 0) return first;
  return new Condition([first, ...others].map((condition) => condition.within("or")).join(" AND "), "and");
}

/** True where one of the conditions is. */
export function or(first: Condition, ...others: readonly Condition[]): Condition {
  if (others.length === 0) return first;
  return new Condition([first, ...others].map((condition) => condition.within()).join(" OR "), "or");
}

/** True where the condition is false. */
export function not(condition: Condition): Condition {
  return new Condition(`NOT ${condition.within("and", "or", "not")}`, "not");
}

/** An attribute's text without regard to case, by Unicode's case folding. Made by {@link Attribute.casei}. */
export class CaselessAttribute {
  readonly #name: string;

  /** @internal */
  constructor(attribute: string) {
    this.#name = `CASEI(${name(attribute)})`;
  }

  eq(text: string): Condition {
    return new Condition(`${this.#name} = ${folded(text)}`, "constraint");
  }

  ne(text: string): Condition {
    return new Condition(`${this.#name} <> ${folded(text)}`, "constraint");
  }

  in(...texts: readonly [string, ...string[]]): Condition {
    return new Condition(`${this.#name} IN (${texts.map(folded).join(", ")})`, "constraint");
  }

  /** As {@link Attribute.like}. */
  like(pattern: string): Condition {
    return new Condition(`${this.#name} LIKE ${folded(pattern)}`, "constraint");
  }
}

function folded(text: string): string {
  return `CASEI(${literal(text)})`;
}

/**
 * An attribute of events. Made by {@link attr}.
 *
 * A constraint on an attribute that is absent, or of another type than the value, is unknown, and so does not match. On an array it holds
 * where it does for one of the elements.
 */
export class Attribute {
  readonly #attribute: string;

  /** @internal */
  constructor(attribute: string) {
    this.#attribute = attribute;
  }

  eq(value: Value): Condition {
    return this.#constraint("=", literal(value));
  }

  ne(value: Value): Condition {
    return this.#constraint("<>", literal(value));
  }

  lt(value: Value): Condition {
    return this.#constraint("<", literal(value));
  }

  le(value: Value): Condition {
    return this.#constraint("<=", literal(value));
  }

  gt(value: Value): Condition {
    return this.#constraint(">", literal(value));
  }

  ge(value: Value): Condition {
    return this.#constraint(">=", literal(value));
  }

  /** From `low` to `high`, both included. */
  between(low: Value, high: Value): Condition {
    return this.#constraint("BETWEEN", `${literal(low)} AND ${literal(high)}`);
  }

  /** One of these values, of which there is at least one. */
  in(...values: readonly [Value, ...Value[]]): Condition {
    return this.#constraint("IN", `(${values.map(literal).join(", ")})`);
  }

  /** The whole text fits: `%` is any number of characters, `_` exactly one, and `\` takes the next one literally. */
  like(pattern: string): Condition {
    return this.#constraint("LIKE", literal(pattern));
  }

  /** There is no such attribute. */
  isNull(): Condition {
    return this.#constraint("IS", "NULL");
  }

  /** There is such an attribute. */
  isNotNull(): Condition {
    return this.#constraint("IS", "NOT NULL");
  }

  /** The same attribute without regard to case. */
  casei(): CaselessAttribute {
    return new CaselessAttribute(this.#attribute);
  }

  #constraint(operator: string, right: string): Condition {
    return new Condition(`${name(this.#attribute)} ${operator} ${right}`, "constraint");
  }
}

/** The attribute of this name, as it is after flattening: `road.name` is the member `name` of the object `road`. */
export function attr(attribute: string): Attribute {
  return new Attribute(attribute);
}
