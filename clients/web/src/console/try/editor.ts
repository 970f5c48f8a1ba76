// The editor of conditions. It knows words and pieces alone: whether a condition is one the broker says.

import {
  autocompletion,
  closeBrackets,
  completionKeymap,
  startCompletion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { AttributeSeen } from "../live/attributes.js";
import { propose, tokens } from "./completion.js";
import { faultWords, rangeOf } from "./faults.js";

const language = StreamLanguage.define({
  token(stream) {
    // The pieces of the line from here on; a text that goes on behind the line's end is coloured to there.
    const [piece] = tokens(stream.string.slice(stream.pos));
    if (piece === undefined || piece.from > 0) {
      stream.eatSpace();
      return null;
    }
    stream.pos += piece.text.length;
    if (piece.kind === "keyword") return "keyword";
    if (piece.kind === "name") return "variableName";
    if (piece.kind === "number") return "number";
    if (piece.kind === "text") return "string";
    return piece.kind === "operator" ? "operator" : null;
  },
});

export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--bad)" },
  { tag: tags.comment, color: "var(--text-2)", fontStyle: "italic" },
]);

export const look = EditorView.theme({
  "&": { fontSize: "0.875rem" },
  ".cm-content": {
    minHeight: "4.5rem",
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    caretColor: "var(--text)",
  },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-placeholder": { color: "var(--text-2)" },
  ".cm-tooltip": { background: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.8" },
  ".cm-diagnostic": { padding: "0.25rem 0.5rem" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textDecorationSkipInk: "none" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--bad)" },
  "& .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
});

export interface Editor {
  /** Underlines where the broker says that something is wrong, or nothing. */
  fault(detail: string | undefined): void;
  remove(): void;
}

/** Makes the editor in an element. `attributes` are those that may be proposed now. */
export function createEditor(
  parent: HTMLElement,
  text: string,
  label: { readonly labelledby: string; readonly describedby: string },
  attributes: () => readonly AttributeSeen[],
  changed: (text: string) => void,
): Editor {
  const complete = (context: CompletionContext): CompletionResult | null => {
    const { from, proposals } = propose(context.state.sliceDoc(0, context.pos), attributes());
    // Without a word begun it is proposed when somebody asks, and behind a space.
    if (!context.explicit && from === context.pos && !/\s$/.test(context.state.sliceDoc(0, context.pos))) return null;
    const types = { attribute: "property", value: "constant", keyword: "keyword" };
    return {
      from,
      options: proposals.map(({ label: proposed, kind, detail }) => ({
        label: proposed,
        type: types[kind],
        ...(detail === undefined ? {} : { detail }),
        boost: { attribute: 2, value: 1, keyword: 0 }[kind],
      })),
    };
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        closeBrackets(),
        autocompletion({ override: [complete], icons: false }),
        language,
        syntaxHighlighting(colours),
        look,
        placeholder("for example: type = 'accident' AND severity >= 2"),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          "aria-labelledby": label.labelledby,
          "aria-describedby": label.describedby,
          spellcheck: "false",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
        // Tab leaves the editor, as it leaves every field.
        keymap.of([...completionKeymap, { key: "Alt-ArrowDown", run: startCompletion }, ...defaultKeymap, ...historyKeymap]),
      ],
    }),
  });
  return {
    fault(detail) {
      const written = view.state.doc.toString();
      const diagnostics =
        detail === undefined ? [] : [{ ...rangeOf(written, detail), severity: "error" as const, message: faultWords(detail) }];
      view.dispatch(setDiagnostics(view.state, diagnostics));
      if (detail === undefined) view.contentDOM.removeAttribute("aria-invalid");
      else view.contentDOM.setAttribute("aria-invalid", "true");
    },
    remove: () => view.destroy(),
  };
}
