// Where the phone is, as the browser tells it.

import type { Fix } from "nearcast";

/** Why the browser cannot be asked at all; `undefined` where it can. */
export function unlocatable(): string | undefined {
  if (!window.isSecureContext) return "The browser tells a page where you are only over https. Set your place by hand.";
  return "geolocation" in navigator ? undefined : "This browser does not know where you are. Set your place by hand.";
}

/** Tells fixes, and in words why there are none for now, until the function that is returned is called. */
export function watch(fix: (fix: Fix) => void, trouble: (words: string, forGood: boolean) => void): () => void {
  const id = navigator.geolocation.watchPosition(
    ({ coords, timestamp }) => {
      fix({ coordinates: [coords.longitude, coords.latitude], accuracy_m: coords.accuracy, unix_s: timestamp / 1000 });
    },
    ({ code }) => {
      if (code === GeolocationPositionError.PERMISSION_DENIED) {
        trouble(
          "You have not allowed this page to see where you are. Allow it in the browser's settings, or set your place by hand.",
          true,
        );
      } else {
        trouble("The phone does not know where it is just now. It goes on trying; you can also set your place by hand.", false);
      }
    },
    { enableHighAccuracy: true, maximumAge: 0, timeout: 30_000 },
  );
  return () => {
    navigator.geolocation.clearWatch(id);
  };
}
