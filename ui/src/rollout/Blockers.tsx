import type { Blocker } from "../api/shapes";
import { Anchor } from "../parts/Anchor";
import { count } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Lasted, Until } from "../parts/time";

interface Properties {
  blockers: Blocker[];
  approvals: number;
  /** Whether it is under way: then the place is kept, so that the board does not jump when a wait comes or goes. */
  moving: boolean;
}

/** What is in the way: since when, and what ends it. */
export function Blockers({ blockers, approvals, moving }: Properties) {
  const none = blockers.length === 0 && approvals === 0;
  if (none && !moving) return null;
  return (
    <section className="blockers" aria-label="What it waits for">
      {none && (
        <p className="blocker blocker-none">
          <Glyph name="chevron" /> Nothing is in its way.
        </p>
      )}
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
              {blocker.reason} <span>{blocker.object}</span>
            </h3>
            <p>{blocker.message}</p>
          </div>
          <p className="blocker-ends">
            {blocker.unblocks !== "" && `Waits for ${blocker.unblocks}`}
            {blocker.since !== undefined && (
              <span>
                for <Lasted from={blocker.since} />
              </span>
            )}
            {blocker.nextCheckAt !== undefined && (
              <span>
                looked at again in <Until time={blocker.nextCheckAt} />
              </span>
            )}
          </p>
        </article>
      ))}
    </section>
  );
}
