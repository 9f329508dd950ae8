import type { Rollout } from "../api/shapes";
import { CommandLine } from "../parts/CommandLine";
import { Outward } from "../parts/Anchor";
import { shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Ago, Lasted } from "../parts/time";
import { rolloutLook } from "../parts/tone";

/** What one looks at afterwards: earlier runs, revisions, conditions, and the same by the command line. */
export function Aside({ rollout }: { rollout: Rollout }) {
  const { history = [], revisions = [], conditions } = rollout;
  return (
    <div className="panels">
      {history.length > 0 && (
        <section className="panel">
          <h2>Runs</h2>
          <ol className="runs">
            {history.map((past) => {
              const look = rolloutLook(past.state);
              return (
                <li key={`${past.run}/${past.generator ?? ""}/${past.startedAt ?? ""}`} className={`tone-${look.tone}`}>
                  <Glyph name={look.glyph} />
                  <b>{past.generator !== undefined ? `generator ${past.generator}` : past.run > 0 ? `#${past.run}` : "earlier"}</b>
                  <code>{shortRevision(past.revision)}</code>
                  <span>
                    {look.word}
                    {past.reached !== undefined && past.of !== undefined && past.reached < past.of && <span className="quiet"> at {past.reached} of {past.of}</span>}
                  </span>
                  <span className="quiet">
                    <Lasted from={past.startedAt} to={past.finishedAt} />
                  </span>
                  <span className="quiet">
                    <Ago time={past.finishedAt} />
                  </span>
                </li>
              );
            })}
          </ol>
        </section>
      )}
      {revisions.length > 0 && (
        <section className="panel">
          <h2>Revisions of this run</h2>
          <ul className="revisions">
            {revisions.map((each) => (
              <li key={`${each.repoURL} ${each.targetRevision}`}>
                <Outward href={each.repoURL}>{each.repoURL}</Outward>
                <span>
                  {each.targetRevision} → <code title={each.revision}>{shortRevision(each.revision)}</code>
                </span>
              </li>
            ))}
          </ul>
          {(rollout.restarts ?? 0) > 0 && <p className="quiet">Begun anew {rollout.restarts} times since a newer commit came in between.</p>}
        </section>
      )}
      {conditions.length > 0 && (
        <section className="panel">
          <h2>Conditions</h2>
          <ul className="conditions">
            {conditions.map((condition) => (
              <li key={condition.type}>
                <b>{condition.type}</b> <span className="condition-status">{condition.status}</span>
                <p>{condition.message}</p>
                <p className="quiet">
                  {condition.reason} <Ago time={condition.lastTransitionTime} />
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
      {rollout.command !== undefined && (
        <section className="panel">
          <h2>The same elsewhere</h2>
          <CommandLine command={rollout.command} />
        </section>
      )}
    </div>
  );
}
