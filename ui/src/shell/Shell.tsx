import { useEffect, useRef, useState, type ReactNode } from "react";
import type { UserInfo } from "../api/shapes";
import { useSource } from "../live/source";
import { followApprovals, useApprovals } from "../live/streams";
import { Anchor } from "../parts/Anchor";
import { Dialog } from "../parts/Dialog";
import { Glyph, Mark, type GlyphName } from "../parts/Glyph";
import { navigate, usePath } from "../parts/route";
import { isTyping } from "../parts/SearchField";
import { LinkSign, StaleBanner } from "./LinkSign";
import { leave } from "./session";
import { chooseTheme, theme, type Theme } from "./theme";
import "./shell.css";

const places: { path: string; label: string; glyph: GlyphName; key: string }[] = [
  { path: "/", label: "Fleet", glyph: "fleet", key: "f" },
  { path: "/applications", label: "Applications", glyph: "apps", key: "a" },
  { path: "/approvals", label: "Approvals", glyph: "inbox", key: "i" },
  { path: "/audit", label: "Audit", glyph: "audit", key: "u" },
  { path: "/settings", label: "Settings", glyph: "settings", key: "s" },
];

/** What every page has around it. */
export function Shell({ user, children }: { user: UserInfo; children: ReactNode }) {
  const path = usePath();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const [help, setHelp] = useState(false);
  useEffect(followApprovals, []);
  // A new page begins at its heading, for those who hear it; on the first one the browser decides.
  useEffect(() => {
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
  }, [path]);
  useShortcuts(() => setHelp(true));
  const waiting = useApprovals().value?.length ?? 0;
  const current = (place: string) => (place === "/" ? path === "/" || path.startsWith("/rollouts/") : path === place || path.startsWith(`${place}/`));
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <Anchor href="/" className="brand" aria-label="Baton, to the fleet">
          <Mark />
          <span>Baton</span>
        </Anchor>
        <nav className="nav" aria-label="Pages">
          {places.map((place) => (
            <Anchor key={place.path} href={place.path} aria-current={current(place.path) ? "page" : undefined}>
              <Glyph name={place.glyph} />
              <span>{place.label}</span>
              {place.path === "/approvals" && waiting > 0 && (
                <b className="badge" aria-label={`${waiting} waiting`}>
                  {waiting}
                </b>
              )}
            </Anchor>
          ))}
        </nav>
        <div className="top-end">
          <LinkSign />
          <ThemeSwitch />
          <span className="who" title={(user.groups ?? []).join(", ")}>
            {user.username}
          </span>
          <button type="button" className="button-bare" aria-label="Sign out" title="Sign out" onClick={() => void leave()}>
            <Glyph name="door" />
          </button>
        </div>
      </header>
      <StaleBanner />
      <main id="main" ref={main} tabIndex={-1} className="page">
        {children}
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

const themes: { value: Theme; glyph: GlyphName; label: string }[] = [
  { value: "auto", glyph: "auto", label: "Colours as the system has them" },
  { value: "light", glyph: "sun", label: "Light colours" },
  { value: "dark", glyph: "moon", label: "Dark colours" },
];

function ThemeSwitch() {
  const chosen = useSource(theme);
  const index = themes.findIndex((each) => each.value === chosen);
  const next = themes[(index + 1) % themes.length];
  const now = themes[index];
  if (next === undefined || now === undefined) return null;
  return (
    <button type="button" className="button-bare" aria-label={`${now.label}. Change to: ${next.label.toLowerCase()}`} title={now.label} onClick={() => chooseTheme(next.value)}>
      <Glyph name={now.glyph} />
    </button>
  );
}

/** `g` and a letter goes to a page, `?` tells the keys. */
function useShortcuts(onHelp: () => void): void {
  useEffect(() => {
    let going = false;
    const listen = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      if (going) {
        going = false;
        const place = places.find((each) => each.key === event.key);
        if (place !== undefined) navigate(place.path);
        return;
      }
      if (event.key === "g") going = true;
      else if (event.key === "?") onHelp();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [onHelp]);
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="facts keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Find on this page</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close, or empty the search</dd>
        <dt>
          <kbd>←</kbd> <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd>
        </dt>
        <dd>Through cards, squares and resources</dd>
        {places.map((place) => (
          <div key={place.path} className="keys-row">
            <dt>
              <kbd>g</kbd> <kbd>{place.key}</kbd>
            </dt>
            <dd>{place.label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
