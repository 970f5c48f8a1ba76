// Waiting for conditions, with deadlines.

/** A promise that fails when it takes too long. */
export async function within<T>(promise: Promise<T>, what: string, deadline_ms = 60_000): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          reject(new Error(`waited ${deadline_ms} ms for ${what}`));
        }, deadline_ms);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until something is so; looks again every few milliseconds. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, deadline_ms = 60_000): Promise<void> {
  const end_ms = Date.now() + deadline_ms;
  while (!(await condition())) {
    if (Date.now() > end_ms) throw new Error(`waited ${deadline_ms} ms until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A queue between what happens and who waits for it. */
export class Inbox<T> {
  readonly #items: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];

  put(item: T): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#items.push(item);
    else taker(item);
  }

  take(what: string): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return within(
      new Promise<T>((resolve) => {
        this.#takers.push(resolve);
      }),
      what,
    );
  }

  get length(): number {
    return this.#items.length;
  }
}
