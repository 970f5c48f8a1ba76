// Where a checkpoint is kept for the next process.

import { NearcastError } from "./errors.js";
import type { Checkpoint } from "./messages.js";

/** What keeps texts under keys, at once or later: `localStorage`, and React Native's AsyncStorage. */
export interface TextStorage {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, text: string): unknown;
}

/** Keeps a checkpoint: what is loaded goes to `connect` as `resume`, and `session.checkpoint` is saved once its message is processed. */
export interface CheckpointStore {
  /** The checkpoint that was saved last; `undefined` where there is none. Throws for what is no checkpoint. */
  load(): Promise<Checkpoint | undefined>;
  /** Resolves when it is kept. */
  save(checkpoint: Checkpoint): Promise<void>;
}

/** Reads `<epoch>:<offset>`, which the clients of all languages write. @internal */
export function readCheckpoint(text: string): Checkpoint {
  const [, epoch, digits] = /^([!-~]+):(\d+)\s*$/.exec(text) ?? [];
  const offset = Number(digits);
  if (epoch === undefined || !Number.isSafeInteger(offset)) throw new NearcastError("a checkpoint is <epoch>:<offset>");
  return { epoch, offset };
}

/** @internal */
export function writeCheckpoint({ epoch, offset }: Checkpoint): string {
  return `${epoch}:${offset}`;
}

/** Keeps a checkpoint in a storage of the platform: `checkpointStorage(localStorage, "nearcast")`, or with AsyncStorage in its place. */
export function checkpointStorage(storage: TextStorage, key: string): CheckpointStore {
  return {
    async load() {
      const text = await storage.getItem(key);
      return text === null ? undefined : readCheckpoint(text);
    },
    async save(checkpoint) {
      await storage.setItem(key, writeCheckpoint(checkpoint));
    },
  };
}
