import { memo, useState, type KeyboardEvent } from "react";
import type { Target } from "../api/shapes";
import { sharedPrefix, shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Lasted } from "../parts/time";
import { targetLook } from "../parts/tone";
import { grouped, type Group } from "./tracks";

const titles: Record<Group, string> = { failed: "Failed", active: "Under way", leaving: "Leaving", next: "To go", done: "Done" };

/** The targets of a lane as cards. The lane is one stop of the Tab key; arrows go up, down and to the lanes beside it. */
export function TargetCards({ lane, targets, onOpen }: { lane: string; targets: Target[]; onOpen: (targets: Target[]) => void }) {
  const [active, setActive] = useState<string | undefined>(undefined);
  const prefix = sharedPrefix(targets.map((target) => target.name));
  const stop = targets.some((target) => target.name === active) ? active : grouped(targets)[0]?.targets[0]?.name;
  return (
    <div className="cards" onKeyDown={rove} data-cards>
      {grouped(targets).map(({ group, targets: members }) => (
        <section key={group} aria-label={titles[group]}>
          <h4 className="cards-title">
            {titles[group]} <span>{members.length}</span>
          </h4>
          <ul>
            {members.map((target) => (
              <li key={target.name} data-flip={`${lane}/${target.name}`}>
                <Card target={target} prefix={prefix} stop={target.name === stop} onFocus={setActive} onOpen={onOpen} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function rove(event: KeyboardEvent<HTMLElement>): void {
  const here = event.currentTarget;
  const cards = [...here.querySelectorAll<HTMLElement>("button")];
  const index = cards.findIndex((card) => card === document.activeElement);
  if (index < 0) return;
  let next: HTMLElement | undefined;
  if (event.key === "ArrowDown") next = cards[index + 1];
  else if (event.key === "ArrowUp") next = cards[index - 1];
  else if (event.key === "Home") next = cards[0];
  else if (event.key === "End") next = cards[cards.length - 1];
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const lanes = [...document.querySelectorAll<HTMLElement>("[data-cards], .heat-squares")];
    const beside = lanes[lanes.indexOf(here) + (event.key === "ArrowRight" ? 1 : -1)];
    const inside = beside?.querySelectorAll<HTMLElement>("button");
    next = beside?.matches(".heat-squares") ? beside : inside?.[Math.min(index, inside.length - 1)];
  } else return;
  event.preventDefault();
  next?.focus();
}

interface CardProperties {
  target: Target;
  prefix: string;
  stop: boolean;
  onFocus: (name: string) => void;
  onOpen: (targets: Target[]) => void;
}

const Card = memo(function Card({ target, prefix, stop, onFocus, onOpen }: CardProperties) {
  const look = targetLook(target.state);
  const settled = target.state === "Healthy" || target.state === "Waiting";
  const moves = target.from !== undefined && target.to !== undefined && target.from !== target.to;
  return (
    <button
      type="button"
      className={`card tone-${look.tone}${settled ? " card-settled" : ""}`}
      tabIndex={stop ? 0 : -1}
      title={target.name}
      aria-label={`${target.name}, ${look.word}${target.message === undefined ? "" : `, ${target.message}`}`}
      onFocus={() => onFocus(target.name)}
      onClick={() => onOpen([target])}
    >
      <Glyph name={look.glyph} className={look.glyph === "running" ? "turning" : ""} />
      <span className="card-name">{target.name.slice(prefix.length)}</span>
      {!settled && <span className="card-time"><Lasted from={target.since} /></span>}
      {!settled && moves && (
        <span className="card-move">
          {shortRevision(target.from)} <Glyph name="chevron" /> {shortRevision(target.to)}
        </span>
      )}
      {!settled && target.message !== undefined && <span className="card-message">{target.message}</span>}
    </button>
  );
});
