// `virtual:world` is the outline of the world, made of data packages while the pages are built: nothing of it is in the repository.

import type { Plugin } from "vite";

const NAME = "virtual:world";
const RESOLVED = `\0${NAME}`;

export function world(): Plugin {
  return {
    name: "world",
    resolveId: (source) => (source === NAME ? RESOLVED : undefined),
    async load(id) {
      if (id !== RESOLVED) return undefined;
      const { makeWorld } = await import("./make.js");
      // Browsers parse a text sooner than an object of a script.
      return `export default JSON.parse(${JSON.stringify(JSON.stringify(makeWorld()))});`;
    },
  };
}
