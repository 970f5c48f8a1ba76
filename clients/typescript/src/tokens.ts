import type { Clock } from "./clock.js";

/** A JSON Web Token, or what gets one: asked before each connection and before the one in use ends. */
export type TokenSource = string | (() => string | Promise<string>);

/** So long before its end a token counts as ended. */
const MARGIN_MS = 60_000;

/** When a JSON Web Token ends (claim `exp`), in milliseconds since 1970. Nothing is verified; `undefined` where it does not say. */
export function expiry(token: string): number | undefined {
  const [, payload] = token.split(".");
  if (payload === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    if (typeof claims !== "object" || claims === null || !("exp" in claims)) return undefined;
    return typeof claims.exp === "number" && Number.isFinite(claims.exp) ? claims.exp * 1000 : undefined;
  } catch {
    return undefined; // The broker says what is wrong with it.
  }
}

/** The token of a session. */
export class Tokens {
  readonly #source: TokenSource | undefined;
  readonly #clock: Clock;
  #held: string | undefined;

  constructor(source: TokenSource | undefined, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Whether there is somebody to ask for another one. */
  get renewable(): boolean {
    return typeof this.#source === "function";
  }

  /** Asks for a token; a text stays what it is. */
  async fresh(): Promise<string | undefined> {
    this.#held = typeof this.#source === "function" ? await this.#source() : this.#source;
    return this.#held;
  }

  /** The token in use, or another where that is about to end. */
  async current(): Promise<string | undefined> {
    if (this.#held !== undefined) {
      const end_ms = expiry(this.#held);
      if (end_ms === undefined || this.#clock.now() < end_ms - MARGIN_MS) return this.#held;
    }
    return this.fresh();
  }

  /** In how many milliseconds the token in use is to be renewed: a minute before its end, or when half of a shorter rest is over. */
  renewal(): number | undefined {
    const end_ms = this.#held === undefined || !this.renewable ? undefined : expiry(this.#held);
    if (end_ms === undefined) return undefined;
    const rest_ms = end_ms - this.#clock.now();
    // One that has ended by this machine's clock may count at the broker's: then its close with 4401 is what renews.
    return rest_ms <= 0 ? undefined : Math.max(rest_ms - MARGIN_MS, rest_ms / 2);
  }
}
