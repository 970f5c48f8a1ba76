// What may come next in a condition: names of attributes that were seen, operators, their values, keywords (docs/semantics.md).

import type { AttributeSeen } from "../live/attributes.js";

export interface Proposal {
  readonly label: string;
  readonly kind: "attribute" | "value" | "keyword";
  readonly detail?: string;
}

export interface Proposals {
  /** Where what they replace begins. */
  readonly from: number;
  readonly proposals: readonly Proposal[];
}

export const KEYWORDS = ["AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS", "NULL", "CASEI", "TRUE", "FALSE"] as const;
const COMPARISONS = ["=", "<>", "<", "<=", ">", ">="] as const;

/** A piece of a condition. `open` is a text or a quoted name whose end is missing. */
export interface Token {
  readonly kind: "name" | "keyword" | "number" | "text" | "operator" | "bracket" | "other";
  readonly text: string;
  readonly from: number;
  readonly open: boolean;
}

const PIECES =
  /(?<text>(?:[Uu]&'(?:[^'\\]|''|\\\\)*|'(?:[^'\\]|''|\\'?)*)(?<textEnd>'?))|(?<quoted>"(?:[^"]|"")*(?<quotedEnd>"?))|(?<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<word>[\p{L}_:][\p{L}\p{N}_:.]*)|(?<operator><>|<=|>=|[=<>])|(?<bracket>[(),])|\S/gu;

export function tokens(condition: string): Token[] {
  return [...condition.matchAll(PIECES)].map(({ 0: text, index: from, groups = {} }) => {
    const piece = (kind: Token["kind"], open = false): Token => ({ kind, text, from, open });
    if (groups["text"] !== undefined) return piece("text", text.length < 2 || groups["textEnd"] === "");
    if (groups["quoted"] !== undefined) return piece("name", text.length < 2 || groups["quotedEnd"] === "");
    if (groups["number"] !== undefined) return piece("number");
    if (groups["word"] !== undefined) return piece((KEYWORDS as readonly string[]).includes(text.toUpperCase()) ? "keyword" : "name");
    return piece(groups["operator"] !== undefined ? "operator" : groups["bracket"] !== undefined ? "bracket" : "other");
  });
}

/** A name as it stands in a condition: with quotes where it is no identifier, or a keyword. */
export function nameText(name: string): string {
  const plain = /^[\p{L}_:][\p{L}\p{N}_:.]*$/u.test(name) && !(KEYWORDS as readonly string[]).includes(name.toUpperCase());
  return plain ? name : `"${name.replaceAll('"', '""')}"`;
}

/** A value as it stands in a condition. */
export function literal(value: string | number | boolean): string {
  if (typeof value === "string") {
    // A backslash before a quote would escape it. U&'..' has a spelling for backslashes, too.
    if (value.endsWith("\\") || value.includes("\\'")) {
      return `U&'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
    }
    return `'${value.replaceAll("'", "''")}'`;
  }
  return typeof value === "number" ? String(value) : value ? "TRUE" : "FALSE";
}

/** What may stand where the cursor is, after `before`. What has been written of a word already is replaced. */
export function propose(before: string, attributes: readonly AttributeSeen[]): Proposals {
  const pieces = tokens(before);
  const last = pieces.at(-1);
  // A word, or an open text, that the cursor is at the end of is what is being written.
  const writing =
    last !== undefined &&
    last.from + last.text.length === before.length &&
    (last.open || last.kind === "name" || last.kind === "keyword" || last.kind === "number");
  const done = writing ? pieces.slice(0, -1) : pieces;
  return { from: writing ? last.from : before.length, proposals: next(done, attributes) };
}

function next(done: readonly Token[], attributes: readonly AttributeSeen[]): Proposal[] {
  const last = done.at(-1);
  const word = last?.kind === "keyword" ? last.text.toUpperCase() : undefined;
  const inList = insideList(done);
  if (last === undefined || word === "AND" || word === "OR" || word === "NOT" || (last.text === "(" && !inList)) {
    if (word === "NOT" && done.at(-2)?.kind === "name") return keywords("BETWEEN", "IN", "LIKE");
    if (word === "NOT" && isKeyword(done.at(-2), "IS")) return keywords("NULL");
    // `BETWEEN 1 AND`: another value.
    if (word === "AND" && isKeyword(done.at(-3), "BETWEEN")) return values(subject(done.slice(0, -3)), attributes);
    const inCasei = last?.text === "(" && isKeyword(done.at(-2), "CASEI");
    return [...names(attributes), ...(inCasei ? [] : keywords(...(word === "NOT" ? [] : ["NOT"]), "CASEI("))];
  }
  if (last.kind === "operator" || word === "BETWEEN" || word === "LIKE" || (inList && (last.text === "(" || last.text === ","))) {
    return values(subject(done), attributes);
  }
  if (word === "IN") return [{ label: "(", kind: "keyword" }];
  if (word === "IS") return keywords("NULL", "NOT NULL");
  const names_ = last.kind === "name" || (last.text === ")" && isKeyword(done.at(-4), "CASEI"));
  if (names_ && done.at(-2)?.kind !== "operator") {
    return [
      ...COMPARISONS.map((label): Proposal => ({ label, kind: "keyword" })),
      ...keywords("BETWEEN", "IN (", "LIKE", "IS NULL", "IS NOT NULL", "NOT IN (", "NOT LIKE", "NOT BETWEEN"),
    ];
  }
  return keywords("AND", "OR");
}

const isKeyword = (token: Token | undefined, keyword: string): boolean => token?.kind === "keyword" && token.text.toUpperCase() === keyword;
const keywords = (...labels: string[]): Proposal[] => labels.map((label) => ({ label, kind: "keyword" }));

function names(attributes: readonly AttributeSeen[]): Proposal[] {
  return attributes.map(({ name, kinds }) => ({ label: nameText(name), kind: "attribute", detail: kinds.join(" or ") }));
}

function values(name: string | undefined, attributes: readonly AttributeSeen[]): Proposal[] {
  const seen = attributes.find((attribute) => attribute.name === name)?.values ?? [];
  const sorted = [...seen].sort((one, other) =>
    typeof one === "number" && typeof other === "number" ? one - other : String(one) < String(other) ? -1 : 1,
  );
  return sorted.map((value) => ({ label: literal(value), kind: "value", detail: "seen" }));
}

/** Whether the last bracket that is open belongs to an `IN`. */
function insideList(done: readonly Token[]): boolean {
  let closed = 0;
  for (let at = done.length - 1; at >= 0; at--) {
    const text = done[at]?.text;
    if (text === ")") closed += 1;
    else if (text === "(" && closed-- === 0) return isKeyword(done[at - 1], "IN");
  }
  return false;
}

/** The attribute that the constraint at the end is on. */
function subject(done: readonly Token[]): string | undefined {
  const name = [...done].reverse().find(({ kind }) => kind === "name")?.text;
  return name?.startsWith('"') === true ? name.slice(1, -1).replaceAll('""', '"') : name;
}

/** Attributes that a condition names and that are not among those that are known, in their order; a name before a bracket is a function. */
export function unknownNames(condition: string, known: ReadonlySet<string>): string[] {
  const pieces = tokens(condition);
  const names = pieces.filter(({ kind, open }, at) => kind === "name" && !open && pieces[at + 1]?.text !== "(").map(({ text }) => text);
  const plain = names
    .filter((name) => !/^(?:event|me|me\..*|div)$/i.test(name))
    .map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name));
  // What somebody is still writing is not unknown yet.
  const unfinished = pieces.at(-1)?.kind === "name" ? plain.at(-1) : undefined;
  return [...new Set(plain)].filter((name) => !known.has(name) && name !== unfinished);
}
