// What the page says of where the phone is, in words.

import { unlocatable, watchGeolocation, type Fix, type NoFix } from "nearcast";

const WORDS: Readonly<Record<NoFix, string>> = {
  insecure: "The browser tells a page where you are only over https. Set your place by hand.",
  unsupported: "This browser does not know where you are. Set your place by hand.",
  denied: "You have not allowed this page to see where you are. Allow it in the browser's settings, or set your place by hand.",
  unavailable: "The phone does not know where it is just now. It goes on trying; you can also set your place by hand.",
};

/** Why the browser cannot be asked at all; `undefined` where it can. */
export function whyUnlocatable(): string | undefined {
  const reason = unlocatable();
  return reason && WORDS[reason];
}

/** Tells fixes, and in words why there are none for now, until the function that is returned is called. */
export function watch(fix: (fix: Fix) => void, trouble: (words: string, forGood: boolean) => void): () => void {
  return watchGeolocation(fix, (reason) => {
    trouble(WORDS[reason], reason === "denied");
  });
}
