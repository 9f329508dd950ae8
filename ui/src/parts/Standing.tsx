// What a page shows while it has nothing to show: not there yet, refused, or really nothing.

import type { ReactNode } from "react";
import type { ApiError } from "../api/request";
import { Glyph, Mark } from "./Glyph";

export function Loading({ what }: { what: string }) {
  return (
    <div className="standing" role="status">
      <Mark className="mark-waiting" />
      <p>Looking at {what} …</p>
    </div>
  );
}

export function Refused({ error, what, again }: { error: ApiError; what: string; again?: () => void }) {
  const denied = error.status === 403 || error.status === 404;
  return (
    <div className="standing" role="alert">
      <Glyph name={denied ? "lock" : "failed"} className="standing-glyph" />
      <h2>{denied ? `You cannot see ${what}` : `${sentence(what)} could not be read`}</h2>
      <p>
        {sentence(error.message)}
        {denied && ". Either it does not exist, or your account lacks the right to see it. An administrator grants it in argocd-rbac-cm or in a role of the project"}.
      </p>
      {!denied && again !== undefined && (
        <button type="button" className="button" onClick={again}>
          <Glyph name="retry" /> Try again
        </button>
      )}
    </div>
  );
}

/** What was there is shown still, though it can no longer be read. */
export function Outdated({ error, again }: { error: ApiError | undefined; again: () => void }) {
  if (error === undefined) return null;
  return (
    <p className="notice notice-page tone-bad" role="alert">
      <Glyph name="failed" />
      <span>What you see is the last that could be read: {error.message}.</span>
      <button type="button" className="button button-small" onClick={again}>
        Try again
      </button>
    </p>
  );
}

export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="standing standing-empty">
      <Mark />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, "");
}
