import { useCallback, useState } from "react";
import type { ActionName, OfferedAction, Rollout, Target } from "../api/shapes";
import { useRollout } from "../live/streams";
import { Anchor } from "../parts/Anchor";
import { Chip } from "../parts/Chip";
import { CommandLine } from "../parts/CommandLine";
import { FilterChips } from "../parts/FilterChips";
import { shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { useQuery } from "../parts/route";
import { SearchField } from "../parts/SearchField";
import { Loading, Nothing, Outdated, Refused } from "../parts/Standing";
import { Ago, Lasted } from "../parts/time";
import { rolloutLook } from "../parts/tone";
import { Tally, Track } from "../parts/Track";
import { ActionDialog } from "./ActionDialog";
import { Blockers } from "./Blockers";
import { Board } from "./Board";
import { actionOrder, targetsOf, wordings } from "./effect";
import { Aside } from "./Aside";
import { TargetDialog } from "./TargetDialog";
import { groupOf, type Group } from "./tracks";
import "./board.css";

/** One rollout: where it is, what it waits for, and what a person can say to it. */
export function RolloutPage({ namespace, name }: { namespace: string; name: string }) {
  const { value: rollout, error, again } = useRollout(namespace, name);
  if (rollout === undefined) {
    return error === undefined ? <Loading what={name} /> : <Refused error={error} what={`the set ${namespace}/${name}`} again={again} />;
  }
  return (
    <>
      <Outdated error={error} again={again} />
      <Shown rollout={rollout} />
    </>
  );
}

function Shown({ rollout }: { rollout: Rollout }) {
  const [asking, setAsking] = useState<{ action: ActionName; application?: string } | undefined>(undefined);
  const [opened, setOpened] = useState<Target[] | undefined>(undefined);
  const query = useQuery();
  const open = useCallback((targets: Target[]) => setOpened(targets), []);
  const empty = rollout.lanes.every((lane) => lane.targets.length === 0) && rollout.counts.total === 0;
  // What is open follows the stream: the names are kept, and what is known of them now is shown.
  const current = opened === undefined ? undefined : opened.map((target) => targetsOf(rollout).find((each) => each.name === target.name) ?? target);
  return (
    <>
      <Head rollout={rollout} onAct={(action) => setAsking({ action })} />
      <Blockers blockers={rollout.blockers} approvals={rollout.approvals} moving={rollout.state === "Progressing" || rollout.state === "RollingBack"} />
      {empty ? (
        <Nothing title="This set has no Applications">
          <p>Its generators gave nothing. What they would give is shown by</p>
          <CommandLine command={`baton appset plan ${rollout.name}`} />
        </Nothing>
      ) : (
        <>
          <div className="toolbar">
            <SearchField label="Find an Application or cluster" />
            <GroupFilter rollout={rollout} />
          </div>
          <Board rollout={rollout} text={query.get("q") ?? ""} group={query.get("show") ?? ""} onOpen={open} />
        </>
      )}
      <Aside rollout={rollout} />
      {current !== undefined && (
        <TargetDialog
          set={rollout}
          targets={current}
          actions={rollout.actions}
          onClose={() => setOpened(undefined)}
          onAct={(action, application) => {
            setOpened(undefined);
            setAsking({ action, application });
          }}
        />
      )}
      {asking !== undefined && <ActionDialog action={asking.action} application={asking.application} rollout={rollout} onClose={() => setAsking(undefined)} />}
    </>
  );
}

function Head({ rollout, onAct }: { rollout: Rollout; onAct: (action: ActionName) => void }) {
  const look = rolloutLook(rollout.state);
  return (
    <header className={`rollout-head tone-${look.tone}`}>
      <p className="crumbs">
        <Anchor href="/">Fleet</Anchor> <Glyph name="chevron" /> <span>{rollout.namespace}</span>
      </p>
      <div className="rollout-title">
        <h1 tabIndex={-1}>{rollout.name}</h1>
        <span role="status">
          <Chip look={look} large />
        </span>
      </div>
      <Actions actions={rollout.actions} onAct={onAct} />
      <p className="rollout-reason">
        {rollout.reason}
      </p>
      <Track counts={rollout.counts} label={`Progress of ${rollout.name}`} />
      <div className="rollout-foot">
        <Tally counts={rollout.counts} />
        <dl className="strip">
          {rollout.run !== undefined && rollout.run > 0 && <Fact name="Run">{`#${rollout.run}`}</Fact>}
          {rollout.revision !== undefined && rollout.revision !== "" && (
            <Fact name="Revision">
              <code>{shortRevision(rollout.revision)}</code>
            </Fact>
          )}
          <Fact name="Strategy">{rollout.strategy.replace("+", " + ")}</Fact>
          <Fact name="Project">{rollout.project}</Fact>
          {rollout.startedAt !== undefined && (
            <Fact name={rollout.finishedAt === undefined ? "Running for" : "Took"}>
              <Lasted from={rollout.startedAt} to={rollout.finishedAt} />
            </Fact>
          )}
          {rollout.pausedAt !== undefined && (
            <Fact name="Paused">
              <Ago time={rollout.pausedAt} />
            </Fact>
          )}
        </dl>
      </div>
    </header>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const ranked = (actions: OfferedAction[]) => [...actions].sort((left, right) => actionOrder.indexOf(left.action) - actionOrder.indexOf(right.action)).filter((each) => each.action in wordings);

/** What is rarely said stands one step further away. */
const rare = new Set<ActionName>(["skip", "rollback-all"]);

/** A button where the caller may and it makes sense; for the rest, why there is none. */
function Actions({ actions, onAct }: { actions: OfferedAction[]; onAct: (action: ActionName) => void }) {
  const possible = ranked(actions).filter((each) => each.allowed && each.sensible);
  const others = ranked(actions).filter((each) => !each.allowed || !each.sensible);
  const further = possible.filter(({ action }) => rare.has(action));
  const button = (action: ActionName, main: boolean) => (
    <button key={action} type="button" className={main ? "button button-main" : "button"} onClick={() => onAct(action)}>
      <Glyph name={wordings[action].glyph} />
      {wordings[action].label}
    </button>
  );
  return (
    <div className="actions">
      {possible.filter(({ action }) => !rare.has(action)).map(({ action }, index) => button(action, index === 0))}
      {further.length + others.length > 0 && (
        <details className="others">
          <summary className="button">{possible.length === 0 ? "Why are there no buttons?" : "More"}</summary>
          <div className="others-box">
            {further.length > 0 && <p className="row">{further.map(({ action }) => button(action, false))}</p>}
            {others.length > 0 && (
              <ul aria-label="What cannot be done now">
                {others.map(({ action, allowed, why }) => (
                  <li key={action}>
                    <Glyph name={allowed ? wordings[action].glyph : "lock"} />
                    <b>{wordings[action].label}</b>
                    <span>{why ?? (allowed ? "makes no sense now" : `needs applicationsets, action/argoproj.io/ApplicationSet/${action}`)}</span>
                  </li>
                ))}
              </ul>
            )}
          </div>
        </details>
      )}
    </div>
  );
}

const groupNames: [Group, string][] = [["failed", "Failed"], ["active", "Under way"], ["leaving", "Leaving"], ["next", "To go"], ["done", "Done"]];

function GroupFilter({ rollout }: { rollout: Rollout }) {
  const numbers = new Map<Group, number>();
  for (const target of targetsOf(rollout)) numbers.set(groupOf(target), (numbers.get(groupOf(target)) ?? 0) + 1);
  const tones = { failed: "bad", active: "active", leaving: "leaving", next: "calm", done: "good" } as const;
  const glyphs = { failed: "failed", active: "running", leaving: "leaving", next: "waiting", done: "done" } as const;
  const choices = groupNames
    .filter(([group]) => (numbers.get(group) ?? 0) > 0)
    .map(([group, label]) => ({ value: group, label, count: numbers.get(group) ?? 0, tone: tones[group], glyph: glyphs[group] }));
  return <FilterChips field="show" label="Show only" choices={choices} />;
}
