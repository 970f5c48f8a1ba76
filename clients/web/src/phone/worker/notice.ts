// What a push message says, as a notification: bounded, and of texts only.

import { eventHash } from "./names.js";

export interface Notice {
  readonly title: string;
  readonly body: string;
  /** Notifications of one client take each other's place. */
  readonly tag: string;
  readonly event?: string;
  /** Where it leads, as the broker says it. */
  readonly url?: string;
}

const [TITLE_MAX, BODY_MAX] = [120, 400];

/** Reads a message. One that cannot be read is told all the same: the browser wants a notification for each. */
export function noticeOf(message: string | undefined): Notice {
  let data: unknown;
  try {
    data = JSON.parse(message ?? "");
  } catch {
    data = undefined;
  }
  const members = typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
  const text = (name: string, limit: number): string => {
    const value = members[name];
    return typeof value === "string" ? value.slice(0, limit) : "";
  };
  const { event } = members;
  const url = text("url", 2000);
  return {
    title: text("title", TITLE_MAX) || "Something happened near you",
    body: text("body", BODY_MAX),
    tag: text("client", 300) || "nearcast",
    ...((typeof event === "string" || typeof event === "number") && { event: String(event) }),
    ...(url !== "" && { url }),
  };
}

/** Where a notification leads: to its event on the page, and never anywhere else. */
export function target({ event, url }: Pick<Notice, "event" | "url">, page: URL): URL {
  if (event !== undefined) return new URL(eventHash(event), page);
  const wanted = url === undefined || !URL.canParse(url, page) ? page : new URL(url, page);
  return wanted.origin === page.origin && wanted.pathname === page.pathname ? wanted : page;
}
