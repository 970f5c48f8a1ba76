// Light or dark: as the system has it, or as somebody has chosen for this browser.

const PLACE = "nearcast.theme";
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** Told on the window whenever another theme is chosen. */
export const THEME_CHANGED = "nearcast-theme";

export function storedTheme(): Theme {
  return THEMES.find((theme) => theme === localStorage.getItem(PLACE)) ?? "system";
}

/** Shows the page in a theme, and keeps it for this browser. */
export function showTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(PLACE);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(PLACE, theme);
    document.documentElement.dataset["theme"] = theme;
  }
  dispatchEvent(new Event(THEME_CHANGED));
}
