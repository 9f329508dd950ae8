import type { Blocker } from "../api/shapes";
import { Anchor } from "../parts/Anchor";
import { count } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Lasted, Until } from "../parts/time";

/** What is in the way: since when, and what ends it. */
export function Blockers({ blockers, approvals }: { blockers: Blocker[]; approvals: number }) {
  if (blockers.length === 0 && approvals === 0) return null;
  return (
    <section className="blockers" aria-label="What it waits for">
      {approvals > 0 && (
        <article className="blocker blocker-person">
          <Glyph name="person" />
          <div>
            <h3>{count(approvals, "approval")} waiting for a person</h3>
            <p>
              <Anchor href="/approvals">Open the inbox</Anchor>
            </p>
          </div>
        </article>
      )}
      {blockers.map((blocker) => (
        <article key={`${blocker.reason} ${blocker.object}`} className="blocker">
          <Glyph name="pending" />
          <div>
            <h3>
              <b>{blocker.reason}</b> {blocker.object}
            </h3>
            <p>{blocker.message}</p>
            <p className="blocker-ends">
              <span>
                Ends when <em>{blocker.unblocks}</em>
              </span>
              <span>
                for <Lasted from={blocker.since} />
              </span>
              {blocker.nextCheckAt !== undefined && (
                <span>
                  looked at again in <Until time={blocker.nextCheckAt} />
                </span>
              )}
            </p>
          </div>
        </article>
      ))}
    </section>
  );
}
