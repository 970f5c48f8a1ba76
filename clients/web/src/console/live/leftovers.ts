// Clients of the broker that a page has to end: what is subscribed to over HTTP outlives the page. Most pages end theirs when they are left; those that
// had no time to are noted in the browser, and another page of it ends theirs.

const KEY = "nearcast-streams";
/** A page says so often that it is there, seldom enough for one in the background. */
const BEAT_MS = 60_000;
const STALE_MS = 5 * BEAT_MS;

type Notes = Record<string, number>;

function read(): Notes {
  return tried() ?? {};
}

/** What is noted; `undefined` where the browser notes nothing. */
function tried(): Notes | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Notes;
  } catch {
    return undefined;
  }
}

/** How many clients of other pages have a stream; any number where the browser does not tell. */
export function streamsBeside(client: string): number {
  const notes = tried();
  if (notes === undefined) return Infinity;
  return Object.entries(notes).filter(([other, at_ms]) => other !== client && Date.now() - at_ms <= STALE_MS).length;
}

function write(notes: Notes): void {
  try {
    if (Object.keys(notes).length === 0) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify(notes));
  } catch {
    // Without it a page that had no time leaves its client to the broker's `sessions.idle_s`.
  }
}

function forget(client: string): void {
  write(Object.fromEntries(Object.entries(read()).filter(([noted]) => noted !== client)));
}

async function end(client: string, token: string | undefined): Promise<void> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  try {
    await fetch(client, { method: "DELETE", keepalive: true, headers });
  } catch {
    // The broker is away, and a client that keeps nothing goes with it.
  }
}

/** Ends what pages of this browser have left behind. */
export async function sweep(token: string | undefined): Promise<void> {
  const stale = Object.entries(read()).filter(([, at_ms]) => Date.now() - at_ms > STALE_MS);
  for (const [client] of stale) {
    await end(client, token);
    forget(client);
  }
}

/** Ends a client with the page, or when the function that is returned is called. `client` is its address. */
export function endLater(client: string, token: string | undefined): () => void {
  const note = (): void => write({ ...read(), [client]: Date.now() });
  note();
  const timer = setInterval(note, BEAT_MS);
  const leave = (): void => {
    clearInterval(timer);
    removeEventListener("pagehide", leave);
    forget(client);
    void end(client, token);
  };
  addEventListener("pagehide", leave);
  return leave;
}
