import { links, useSource } from "../live/source";
import type { Link } from "../live/stream";
import { Glyph } from "../parts/Glyph";

const worstFirst: Link[] = ["stale", "polling", "connecting", "refused", "live"];

function worst(): { link: Link; problem?: string } | undefined {
  const all = [...links.read().values()];
  return worstFirst.flatMap((link) => all.filter((each) => each.link === link))[0];
}

const words: Record<Link, string> = { live: "Live", connecting: "Connecting", stale: "No news", polling: "Asking every few seconds", refused: "Not followed" };

/** Whether what is shown is what is. */
export function LinkSign() {
  useSource(links);
  const state = worst();
  if (state === undefined) return null;
  return (
    <span className={`link link-${state.link}`} role="status" title={state.problem}>
      <i aria-hidden />
      <span className="link-word">{words[state.link]}</span>
    </span>
  );
}

/** Across the page where it is old. */
export function StaleBanner() {
  useSource(links);
  const state = worst();
  if (state?.link !== "stale") return null;
  return (
    <p className="banner" role="alert">
      <Glyph name="person" />
      The server has gone quiet: what you see may be old. The page keeps trying.
    </p>
  );
}
