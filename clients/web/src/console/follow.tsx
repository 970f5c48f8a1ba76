// A button that lets the camera go along.

import { useConsole } from "./context.js";

/** Follows a client or a point on the map, until somebody drags it or presses again. */
export function FollowButton({ id }: { readonly id: string }) {
  const { following, view, same } = useConsole();
  const follows = following.value === id;
  return (
    <button
      type="button"
      class="small"
      aria-pressed={follows}
      onClick={() => {
        following.value = follows ? undefined : id;
        if (!follows) view.value?.keepUp(same.pointOf(id) ?? id);
      }}
    >
      {follows ? "Following" : "Follow"}
    </button>
  );
}
