import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Console } from "./model.js";

const Context = createContext<Console | undefined>(undefined);

export const ConsoleProvider = Context.Provider;

/** The console that a component is part of. */
export function useConsole(): Console {
  const console = useContext(Context);
  if (console === undefined) throw new Error("a component of the console stands outside of it");
  return console;
}
