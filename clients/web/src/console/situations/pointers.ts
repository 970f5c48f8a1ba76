// Where in a document's text the faults of the broker are.

import { findNodeAtLocation, parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";

import { rangeOf, type Range } from "../try/faults.js";

export interface Place extends Range {
  readonly detail: string;
  /** Empty of the whole document, and of what is no JSON. */
  readonly pointer: string;
}

/** Reads a document; `fault` where it is no JSON. */
export function readDocument(text: string): { readonly document: unknown } | { readonly fault: Place } {
  try {
    return { document: JSON.parse(text) as unknown };
  } catch {
    const errors: ParseError[] = [];
    parseTree(text, errors, { disallowComments: true });
    const [first] = errors;
    const { offset, length } = first ?? { offset: text.length, length: 0 };
    const words = (first === undefined ? "unreadable" : printParseErrorCode(first.error)).replaceAll(/(?!^)([A-Z])/g, " $1").toLowerCase();
    return { fault: { pointer: "", detail: `this is no JSON: ${words}`, from: offset, to: Math.min(text.length, offset + length) } };
  }
}

/** The places of faults in a document: of that it is no JSON, where it is none. */
export function placesInDocument(text: string, faults: readonly { readonly pointer: string; readonly detail: string }[]): readonly Place[] {
  const read = readDocument(text);
  return "fault" in read ? [read.fault] : placesOf(text, faults);
}

/** The place of each fault: the value that its pointer names, or what is nearest around it where that is missing. */
export function placesOf(text: string, faults: readonly { readonly pointer: string; readonly detail: string }[]): Place[] {
  const root = parseTree(text);
  return faults.map(({ pointer, detail }) => ({ pointer, detail, ...placeOf(text, root, pointer, detail) }));
}

function placeOf(text: string, root: Node | undefined, pointer: string, detail: string): Range {
  const path = pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  let node = root;
  for (const part of path) {
    const inner = node === undefined ? undefined : findNodeAtLocation(node, [node.type === "array" ? Number(part) : part]);
    if (inner === undefined) break;
    node = inner;
  }
  if (node === undefined) return { from: 0, to: text.length };
  const { offset, length } = node;
  // A fault within a text has a column of it; escapes would shift it, and then the whole text is meant.
  if (node.type === "string" && !text.slice(offset, offset + length).includes("\\")) {
    const inner = rangeOf(node.value as string, detail);
    return { from: offset + 1 + inner.from, to: offset + 1 + inner.to };
  }
  return { from: offset, to: offset + length };
}
