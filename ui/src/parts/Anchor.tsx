import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { navigate } from "./route";
import { safeHref } from "./format";

/** A link inside these pages: a real one, that opens in a new tab where that is asked for. */
export function Anchor({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={href} onClick={go} {...rest} />;
}

/** A link to elsewhere; plain text where its address is none that may be followed. */
export function Outward({ href, children }: { href: string | undefined; children: string }) {
  const safe = safeHref(href);
  if (safe === undefined) return <span>{children}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
