// A file that keeps a checkpoint; for Node.

import { open, readFile, rename } from "node:fs/promises";

import { readCheckpoint, writeCheckpoint, type CheckpointStore } from "./checkpoints.js";

/** Keeps a checkpoint in a file, which a crash leaves as it was before or as it is after. One process at a time writes it. */
export function checkpointFile(path: string): CheckpointStore {
  let last: Promise<unknown> = Promise.resolve();
  const write = async (text: string): Promise<void> => {
    const file = await open(`${path}.new`, "w");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  };
  return {
    async load() {
      try {
        return readCheckpoint(await readFile(path, "utf8"));
      } catch (error) {
        if ((error as { code?: string }).code === "ENOENT") return undefined;
        throw error;
      }
    },
    save(checkpoint) {
      // One after the other, in the order of the calls: the last one stands.
      const saved = last.then(() => write(writeCheckpoint(checkpoint)));
      last = saved.catch(() => undefined);
      return saved;
    },
  };
}
