import { useEffect, useMemo, useRef, type ReactNode } from "react";
import type { Rollout, Target } from "../api/shapes";
import { ExchangeZone } from "./ExchangeZone";
import { useFlip } from "./flip";
import { LaneColumn } from "./LaneColumn";
import { tracksOf, type TrackRow } from "./tracks";

interface Properties {
  rollout: Rollout;
  text: string;
  group: string;
  onOpen: (targets: Target[]) => void;
}

/** Lanes from left to right, with what stands between them; on a narrow screen from top to bottom. */
export function Board({ rollout, text, group, onOpen }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => tracksOf(rollout.lanes), [rollout.lanes]);
  useFlip(box, rollout.lanes);
  const open = rows.map((row) => (row.baton === undefined ? "" : `${row.baton.at}${row.baton.index}`)).join(" ");
  useEffect(() => bringIntoSight(box.current), [open]);
  return (
    <div ref={box} className="board">
      {rows.map((row) => (
        <div key={row.id} className="board-row">
          {row.title !== "" && <h2 className="board-title">{row.title}</h2>}
          <div className="board-lanes" tabIndex={-1}>
            {columnsOf(row, text, group, onOpen)}
          </div>
        </div>
      ))}
    </div>
  );
}

function columnsOf(row: TrackRow, text: string, group: string, onOpen: (targets: Target[]) => void): ReactNode[] {
  const columns: ReactNode[] = [];
  const zone = (index: number) => {
    const here = row.zones[index];
    const end = index === row.lanes.length;
    if (here === undefined || ((index === 0 || end) && here.gates.length === 0)) return;
    const before = row.lanes[index - 1];
    const label = before === undefined ? `Before ${row.lanes[0]?.title ?? ""}` : end ? `After ${before.title}` : `Between ${before.title} and ${row.lanes[index]?.title ?? ""}`;
    columns.push(<ExchangeZone key={`zone ${index}`} zone={here} baton={row.baton?.at === "zone" && row.baton.index === index} waitUntil={before?.waitUntil} label={label} />);
  };
  row.lanes.forEach((lane, index) => {
    zone(index);
    const baton = row.baton?.at === "lane" && row.baton.index === index;
    columns.push(<LaneColumn key={lane.id} lane={lane} position={index + 1} baton={baton} text={text} group={group} onOpen={onOpen} />);
  });
  zone(row.lanes.length);
  return columns;
}

/** Where lanes do not fit beside each other, the one with the baton is scrolled to, without moving the page itself. */
function bringIntoSight(board: HTMLElement | null): void {
  for (const lanes of board?.querySelectorAll<HTMLElement>(".board-lanes") ?? []) {
    const here = lanes.querySelector<HTMLElement>(".lane-here, .zone-here");
    if (here === null || lanes.scrollWidth <= lanes.clientWidth) continue;
    lanes.scrollTo({ left: here.offsetLeft - lanes.offsetLeft - lanes.clientWidth / 3 });
  }
}
