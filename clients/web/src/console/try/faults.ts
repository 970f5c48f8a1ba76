// Where in a condition a fault of the broker's is.

/** A part of a text, in JavaScript's units. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * The range that "at column 29" of a fault means; columns count characters (Unicode scalar values) from 1, over line ends as well. It reaches to the end of the
 * word there; behind the last character it is that one. Without a column it is the whole text.
 */
export function rangeOf(text: string, detail: string): Range {
  const column = [...detail.matchAll(/\bat column (\d+)/g)].at(-1)?.[1];
  if (column === undefined) return { from: 0, to: text.length };
  const before = Array.from(text)
    .slice(0, Number(column) - 1)
    .join("").length;
  const from = Math.min(before, text.length);
  const [word = ""] = /^(?:[\p{L}\p{N}_:.]+|[\s\S])/u.exec(text.slice(from)) ?? [];
  if (word !== "") return { from, to: from + word.length };
  const last = Array.from(text).at(-1)?.length ?? 0;
  return { from: text.length - last, to: text.length };
}

/** A fault's words without the place, which is shown. */
export function faultWords(detail: string): string {
  const words = detail.replace(/,? at column \d+(?=;|$)/, "");
  return words.charAt(0).toUpperCase() + words.slice(1) + ".";
}
