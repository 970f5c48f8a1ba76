// As whom the console speaks to the broker: its token, its name, and when it has to ask for another token.

import { computed, signal } from "@preact/signals";
import { ProblemError } from "nearcast";

import { call, HttpProblem } from "../shared/http.js";
import { claimsOf, storedToken, storeToken, type Claims } from "../shared/token.js";

/** Letters that tell this tab from others. */
export function randomName(bytes = 5): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What went wrong, for people. */
export function reasonOf(error: unknown): string {
  if (error instanceof ProblemError) return error.detail ?? error.title;
  if (error instanceof HttpProblem) return error.message;
  // What `fetch` says of a broker that is not there differs from browser to browser.
  if (error instanceof TypeError) return "the broker cannot be reached";
  return error instanceof Error ? error.message : String(error);
}

/** The status with which the broker refused; `undefined` where it was something else. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof HttpProblem || error instanceof ProblemError ? error.status : undefined;
}

export class Access {
  readonly token = signal(storedToken());
  readonly claims = computed((): Claims | undefined => (this.token.value === undefined ? undefined : claimsOf(this.token.value)));
  /** Why a token is asked for; `undefined` while none is. */
  readonly asking = signal<string | undefined>(undefined);
  /** The broker takes calls under no token, or under this one. Where it does not there is no point in asking it every second. */
  readonly usable = signal(true);
  /** Tells the subscriptions of this tab from those of another under the same name. */
  readonly tab = randomName();
  /** Whether the console is a client that others are, too: a token without the scope admin permits no name but its own. */
  readonly borrowed = computed(() => this.claims.value?.sub !== undefined && !this.claims.value.scopes.includes("admin"));
  readonly client = computed(() => (this.borrowed.value ? this.claims.value?.sub : undefined) ?? `console-${this.tab}`);
  /** Grows with each token that is given, the same one again included. */
  readonly given = signal(0);

  /** `wanted`: the broker takes nothing without a token. */
  constructor(wanted: boolean) {
    if (!wanted || this.token.value !== undefined) return;
    this.usable.value = false;
    this.asking.value = "";
  }

  /** Calls the broker. Where it wants another token that is asked for, and the call fails all the same. */
  async call(path: string, request: { method?: string; body?: unknown; signal?: AbortSignal } = {}): Promise<unknown> {
    const token = this.token.value;
    try {
      return await call(path, token, request);
    } catch (error) {
      if (statusOf(error) === 401 && token === this.token.value) this.refused(reasonOf(error));
      throw error;
    }
  }

  ask(why = ""): void {
    this.asking.value ??= why;
  }

  /** The broker does not take the token: another is asked for, once. */
  refused(why: string): void {
    if (this.usable.value) this.ask(why);
    this.usable.value = false;
  }

  /** Goes on by another token. The page begins anew where that is somebody else's, or none: what it shows is not for them. */
  use(token: string | undefined): void {
    storeToken(token);
    const before = this.claims.peek();
    const now = token === undefined ? undefined : claimsOf(token);
    if (before !== undefined && (before.sub !== now?.sub || before.tenant !== now?.tenant)) {
      location.reload();
      return;
    }
    this.token.value = token?.trim();
    this.asking.value = undefined;
    this.usable.value = true;
    this.given.value = this.given.peek() + 1;
  }
}
