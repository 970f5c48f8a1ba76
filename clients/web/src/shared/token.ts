// The JSON Web Token that a page was given. It stays in this tab: once that is closed it has to be given again.

const PLACE = "nearcast.token";

/** What of a token's claims a page goes by. The broker checks them; the page only shows what will be refused before it is. */
export interface Claims {
  readonly sub?: string;
  readonly scopes: readonly string[];
  readonly tenant?: string;
  /** Unix seconds. */
  readonly exp?: number;
}

/** Reads a token's claims without checking its signature; `undefined` where it is no token. */
export function claimsOf(token: string): Claims | undefined {
  const [, payload, signature, ...more] = token.trim().split(".");
  if (payload === undefined || signature === undefined || more.length > 0) return undefined;
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof claims !== "object" || claims === null || Array.isArray(claims)) return undefined;
    const { sub, scope, tenant, exp } = claims as Record<string, unknown>;
    return {
      ...(typeof sub === "string" ? { sub } : {}),
      scopes: typeof scope === "string" ? scope.split(" ").filter((name) => name !== "") : [],
      ...(typeof tenant === "string" ? { tenant } : {}),
      ...(typeof exp === "number" ? { exp } : {}),
    };
  } catch {
    return undefined;
  }
}

export function storedToken(): string | undefined {
  return sessionStorage.getItem(PLACE) ?? undefined;
}

export function storeToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(PLACE);
  else sessionStorage.setItem(PLACE, token.trim());
}
