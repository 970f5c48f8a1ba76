// The editor of a document or of a program. It knows their words alone: whether a check or a rule set is one the broker says.

import { closeBrackets } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";

import { colours, look } from "../try/editor.js";
import type { Place } from "./pointers.js";

/** Each language by the pieces of its lines, and the words for their colours; the first that is there counts. */
const PIECES = {
  json: [
    [/^"(?:[^"\\]|\\.)*"(?=\s*:)/, "variableName"],
    [/^"(?:[^"\\]|\\.)*"?/, "string"],
    [/^-?\d[\d.eE+-]*/, "number"],
    [/^(?:true|false|null)\b/, "keyword"],
  ],
  chr: [
    [/^%.*/, "comment"],
    [/^'(?:[^'\\]|\\.|'')*'?/, "string"],
    [/^"(?:[^"\\]|\\.)*"?/, "string"],
    [/^[A-Z_]\w*/, "variableName"],
    [/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/, "number"],
    [/^(?:<=>|==>|:-|\||@|\\(?=[\s\w]))/, "keyword"],
    [/^(?:is|mod|true|fail)\b/, "keyword"],
    [/^\w+/, null],
  ],
} as const satisfies Readonly<Record<string, readonly (readonly [RegExp, string | null])[]>>;

export type Language = keyof typeof PIECES;

function languageOf(name: Language): StreamLanguage<unknown> {
  return StreamLanguage.define({
    token(stream) {
      if (stream.eatSpace()) return null;
      for (const [piece, word] of PIECES[name]) if (stream.match(piece)) return word;
      stream.next();
      return null;
    },
  });
}

export interface TextEditor {
  /** Underlines faults. */
  faults(places: readonly Place[]): void;
  /** Brings the cursor to a place. */
  goTo(place: Place): void;
  remove(): void;
}

export function createTextEditor(
  parent: HTMLElement,
  language: Language,
  text: string,
  label: { readonly labelledby: string; readonly describedby: string },
  changed: (text: string) => void,
): TextEditor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        closeBrackets(),
        bracketMatching(),
        languageOf(language),
        syntaxHighlighting(colours),
        look,
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
        keymap.of([...defaultKeymap, ...historyKeymap]),
      ],
    }),
  });
  return {
    faults(places) {
      view.dispatch(
        setDiagnostics(
          view.state,
          places.map(({ from, to, detail }) => ({ from, to, severity: "error" as const, message: detail })),
        ),
      );
      if (places.length === 0) view.contentDOM.removeAttribute("aria-invalid");
      else view.contentDOM.setAttribute("aria-invalid", "true");
    },
    goTo({ from, to }) {
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      view.focus();
    },
    remove: () => view.destroy(),
  };
}
