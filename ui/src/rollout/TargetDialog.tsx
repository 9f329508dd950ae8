import type { ActionName, OfferedAction, Target } from "../api/shapes";
import { Anchor } from "../parts/Anchor";
import { Chip } from "../parts/Chip";
import { Dialog } from "../parts/Dialog";
import { commandLine, shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { applicationPath } from "../parts/route";
import { Ago } from "../parts/time";
import { healthLook, syncLook, targetLook } from "../parts/tone";
import { namespaceFlag } from "./effect";

interface Properties {
  set: { name: string; namespace: string };
  targets: Target[];
  actions: OfferedAction[];
  onAct: (action: ActionName, application: string) => void;
  onClose: () => void;
}

/** One target, or those a square stands for. */
export function TargetDialog({ set, targets, actions, onAct, onClose }: Properties) {
  const [target] = targets;
  if (target === undefined) return null;
  if (targets.length > 1) {
    return (
      <Dialog title={`${targets.length} Applications`} onClose={onClose}>
        <ul className="named">
          {targets.map((each) => (
            <li key={each.name} className={`tone-${targetLook(each.state).tone}`}>
              <Glyph name={targetLook(each.state).glyph} />
              <Anchor href={applicationPath(each.namespace, each.name)}>{each.name}</Anchor>
            </li>
          ))}
        </ul>
      </Dialog>
    );
  }
  const offered = (action: ActionName) => actions.find((each) => each.action === action);
  const fitting = (["retry", "skip"] as const).filter((action) => offered(action)?.allowed === true && (action === "retry" ? target.state === "Failed" : target.state !== "Healthy"));
  return (
    <Dialog title={target.name} command={commandLine(["baton", "appset", "explain", set.name, target.name, ...namespaceFlag(set.namespace)])} onClose={onClose}>
      <p className="chips">
        <Chip look={targetLook(target.state)} />
        <Chip look={healthLook(target.health)} quiet />
        <Chip look={syncLook(target.sync)} quiet />
      </p>
      {target.message !== undefined && <p>{target.message}</p>}
      <dl className="facts">
        <dt>Cluster</dt>
        <dd>{target.cluster}</dd>
        {target.since !== undefined && (
          <>
            <dt>So since</dt>
            <dd><Ago time={target.since} /></dd>
          </>
        )}
        {target.to !== undefined && (
          <>
            <dt>Revision</dt>
            <dd className="mono">
              {target.from !== undefined && <>{shortRevision(target.from)} → </>}
              {shortRevision(target.to)}
            </dd>
          </>
        )}
      </dl>
      <p className="row">
        <Anchor className="button" href={applicationPath(target.namespace, target.name)}>
          Open the Application
        </Anchor>
        {fitting.map((action) => (
          <button key={action} type="button" className="button" onClick={() => onAct(action, target.name)}>
            <Glyph name={action === "retry" ? "retry" : "skipped"} />
            {action === "retry" ? "Try again" : "Skip"}
          </button>
        ))}
      </p>
    </Dialog>
  );
}
