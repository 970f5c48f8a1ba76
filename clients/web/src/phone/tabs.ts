// Of several tabs of one client one acts: two would take each other's events. The newest does, and the one before says so.

/** So long the tab before has to store what it has taken. One that sleeps does not answer. */
const LEAVE_MS = 3000;

/**
 * Resolves when this tab acts for the client, to what ends that. `leave` is called when another tab wants to, and resolves when this one has ended what
 * it did. Where the browser has no locks, which it hides from pages without https, every tab acts: then each shows everything, and stores it under the
 * same keys.
 */
export async function actAlone(client: string, leave: () => Promise<void>): Promise<() => void> {
  const locks = (navigator as Partial<Navigator>).locks;
  if (locks === undefined) return () => undefined;
  const name = `nearcast.phone ${client}`;
  const channel = new BroadcastChannel(name);
  const held = new AbortController();
  const release = (): void => {
    channel.close();
    held.abort();
  };
  const go = (): void => {
    channel.onmessage = null;
    void leave().then(release);
  };
  channel.postMessage("leave");
  channel.onmessage = go;
  await new Promise<void>((resolve) => {
    const hold = (): Promise<void> => {
      resolve();
      return new Promise((ended) => {
        if (held.signal.aborted) ended();
        held.signal.onabort = () => ended();
      });
    };
    const unanswered = new AbortController();
    const timer = setTimeout(() => {
      unanswered.abort();
    }, LEAVE_MS);
    const asked = locks.request(name, { signal: unanswered.signal }, () => {
      clearTimeout(timer);
      return hold();
    });
    asked
      .catch((error: unknown) => {
        if (!unanswered.signal.aborted) throw error;
        return locks.request(name, { steal: true }, hold);
      })
      // Stolen from here.
      .catch(go);
  });
  return release;
}
