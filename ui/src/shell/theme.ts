// Light or dark: as the system says, unless a person said otherwise on this machine.

import { Source } from "../live/source";

export type Theme = "auto" | "light" | "dark";

const key = "baton-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    // A browser that keeps nothing for us still shows the pages.
    return "auto";
  }
}

export const theme = new Source<Theme>("auto");

export function beginTheme(): void {
  chooseTheme(stored());
}

export function chooseTheme(chosen: Theme): void {
  theme.write(chosen);
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
  try {
    if (chosen === "auto") localStorage.removeItem(key);
    else localStorage.setItem(key, chosen);
  } catch {
    return;
  }
}
