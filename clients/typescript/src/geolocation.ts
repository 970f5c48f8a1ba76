// Where a device is, as its browser tells it.

import { NearcastError } from "./errors.js";
import type { Fix } from "./follow.js";

/**
 * Why there is no fix: the page is not over https (`insecure`), the browser has no geolocation (`unsupported`), the person does not permit it
 * (`denied`), or the device does not know for now (`unavailable`). Only the last one passes by itself.
 */
export type NoFix = "insecure" | "unsupported" | "denied" | "unavailable";

export interface GeolocationOptions {
  /** Ask for the best fixes that the device has (true), which takes more of the battery. */
  readonly highAccuracy?: boolean;
  /** Seconds without a fix after which it is `unavailable` (30). */
  readonly timeout_s?: number;
  /** Told each time that there is no fix for now. */
  readonly onTrouble?: (reason: NoFix) => void;
}

/** There will be no fix. */
export class GeolocationError extends NearcastError {
  readonly reason: NoFix;

  constructor(reason: NoFix) {
    super(`there is no geolocation: ${reason}`);
    this.name = "GeolocationError";
    this.reason = reason;
  }
}

/** Why the browser cannot be asked at all; `undefined` where it can. */
export function unlocatable(): NoFix | undefined {
  if (!globalThis.isSecureContext) return "insecure";
  return "geolocation" in navigator ? undefined : "unsupported";
}

/** Tells fixes, and why there are none for now, until the function that is returned is called. */
export function watchGeolocation(fix: (fix: Fix) => void, trouble: (reason: NoFix) => void, options: GeolocationOptions = {}): () => void {
  const id = navigator.geolocation.watchPosition(
    ({ coords, timestamp }) => {
      fix({ coordinates: [coords.longitude, coords.latitude], accuracy_m: coords.accuracy, unix_s: timestamp / 1000 });
    },
    ({ code, PERMISSION_DENIED }) => {
      trouble(code === PERMISSION_DENIED ? "denied" : "unavailable");
    },
    { enableHighAccuracy: options.highAccuracy ?? true, maximumAge: 0, timeout: (options.timeout_s ?? 30) * 1000 },
  );
  return () => {
    navigator.geolocation.clearWatch(id);
  };
}

/**
 * The device's fixes, for `session.follow(geolocation())`. Of those that nobody has taken the newest is kept. The iteration throws a
 * {@link GeolocationError} where there is no geolocation, or the person does not permit it.
 */
export async function* geolocation(options: GeolocationOptions = {}): AsyncGenerator<Fix, void, undefined> {
  const never = unlocatable();
  if (never !== undefined) throw new GeolocationError(never);
  let newest: Fix | undefined;
  const state = { denied: false };
  let wake: (() => void) | undefined;
  const stop = watchGeolocation(
    (fix) => {
      newest = fix;
      wake?.();
    },
    (reason) => {
      options.onTrouble?.(reason);
      state.denied ||= reason === "denied";
      wake?.();
    },
    options,
  );
  try {
    for (;;) {
      if (newest !== undefined) {
        const fix: Fix = newest;
        newest = undefined;
        yield fix;
      } else if (state.denied) {
        throw new GeolocationError("denied");
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stop();
  }
}
