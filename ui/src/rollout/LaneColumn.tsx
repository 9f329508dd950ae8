import { memo } from "react";
import type { Lane, Target } from "../api/shapes";
import { Chip } from "../parts/Chip";
import { Lasted } from "../parts/time";
import { Track } from "../parts/Track";
import { laneLook } from "../parts/tone";
import { HeatGrid } from "./HeatGrid";
import { TargetCards } from "./TargetCards";
import { cardLimit, matches } from "./tracks";

interface Properties {
  lane: Lane;
  position: number;
  baton: boolean;
  text: string;
  group: string;
  onOpen: (targets: Target[]) => void;
}

/** A step or phase with its targets. */
export const LaneColumn = memo(function LaneColumn({ lane, position, baton, text, group, onOpen }: Properties) {
  const wide = lane.targets.length > cardLimit;
  const shown = wide ? lane.targets : lane.targets.filter((target) => matches(target, text, group));
  const { counts } = lane;
  return (
    <section className={`lane lane-${lane.state}${wide ? " lane-wide" : ""}${baton ? " lane-here" : ""}`} aria-label={`${lane.title}, ${laneLook(lane.state).word}`} data-lane={lane.id}>
      <div className="lane-rail" aria-hidden>
        <span className="lane-number">{lane.kind === "unmatched" ? "–" : position}</span>
        {baton && <span className="baton" data-flip="baton" />}
      </div>
      <header className="lane-head">
        <div className="lane-title">
          <h3>{lane.title}</h3>
          <Chip look={laneLook(lane.state)} quiet />
        </div>
        {lane.selector !== "" && <p className="lane-selector">{lane.selector}</p>}
        <Track counts={counts} label={`Progress of ${lane.title}`} slim />
        <p className="lane-counts">
          <span>
            <b>{counts.done}</b> of {counts.total}
          </span>
          {counts.updating > 0 && <span className="tone-active">{counts.updating} under way{lane.maxUpdate === undefined ? "" : ` of ${lane.maxUpdate} at once`}</span>}
          {counts.updating === 0 && lane.maxUpdate !== undefined && lane.state !== "Done" && <span>{lane.maxUpdate === 0 ? "by hand" : `${lane.maxUpdate} at once`}</span>}
          {counts.failed > 0 && <span className="tone-bad">{counts.failed} failed</span>}
          {lane.openedAt !== undefined && lane.state === "Open" && <span>open <Lasted from={lane.openedAt} /></span>}
        </p>
        {lane.message !== undefined && lane.message !== "" && <p className="lane-message">{lane.message}</p>}
      </header>
      {wide ? (
        <HeatGrid targets={shown} label={lane.title} text={text} group={group} onOpen={onOpen} />
      ) : shown.length === 0 ? (
        <p className="lane-empty">{lane.targets.length === 0 ? "No Applications." : "None that the filter asks for."}</p>
      ) : (
        <TargetCards lane={lane.id} targets={shown} onOpen={onOpen} />
      )}
    </section>
  );
});
