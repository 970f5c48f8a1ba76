// The editor of a check's document. It knows JSON alone: whether a check is one the broker says.

import { closeBrackets } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";

import { colours, look } from "../try/editor.js";
import type { Place } from "./pointers.js";

const language = StreamLanguage.define({
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^"(?:[^"\\]|\\.)*"(?=\s*:)/)) return "variableName";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^-?\d[\d.eE+-]*/)) return "number";
    if (stream.match(/^(?:true|false|null)\b/)) return "keyword";
    stream.next();
    return null;
  },
});

export interface JsonEditor {
  /** Underlines faults. */
  faults(places: readonly Place[]): void;
  /** Brings the cursor to a place. */
  goTo(place: Place): void;
  remove(): void;
}

export function createJsonEditor(
  parent: HTMLElement,
  text: string,
  label: { readonly labelledby: string; readonly describedby: string },
  changed: (text: string) => void,
): JsonEditor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        closeBrackets(),
        bracketMatching(),
        language,
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
