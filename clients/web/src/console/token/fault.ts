// What is wrong with a token, as far as a page can see.

import { claimsOf } from "../../shared/token.js";
import { span } from "../words.js";

/** What is wrong with a token that can be seen without asking anybody; `undefined` where nothing is. */
export function faultOf(token: string, now_s: number): string | undefined {
  if (token === "") return "Paste a token first.";
  const claims = claimsOf(token);
  if (claims === undefined) {
    return token.split(".").length === 3
      ? "This is no JSON Web Token: its middle part cannot be read. Was it copied whole?"
      : "This is no JSON Web Token: one has three parts with dots between them.";
  }
  if (claims.exp !== undefined && claims.exp <= now_s) return `This token ended ${span(now_s - claims.exp)} ago. Get a new one.`;
  return undefined;
}
