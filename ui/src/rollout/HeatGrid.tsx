import { memo, useId, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { Target } from "../api/shapes";
import { count } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Lasted } from "../parts/time";
import { targetLook } from "../parts/tone";
import { matches, squaresOf, stepInGrid, type Square } from "./tracks";

interface Properties {
  targets: Target[];
  label: string;
  text: string;
  group: string;
  onOpen: (targets: Target[]) => void;
}

/** Squares are drawn in pieces, so that a change of one draws a piece and not a thousand. */
const piece = 40;

/** One square for each target. One stop of the Tab key; arrows go through it, Enter opens. */
export function HeatGrid({ targets, label, text, group, onOpen }: Properties) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const [focused, setFocused] = useState(false);
  const [hovered, setHovered] = useState<number | undefined>(undefined);
  const squares = useMemo(() => squaresOf(targets), [targets]);
  const filtered = text !== "" || group !== "";
  const pieces: number[] = [];
  for (let start = 0; start < squares.length; start += piece) pieces.push(start);
  const shown = squares[hovered ?? (focused ? Math.min(active, squares.length - 1) : -1)];

  const move = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const square = squares[active];
      if (square !== undefined) onOpen(square.targets);
      return;
    }
    const next = stepInGrid(event.key, active, squares.length, columnsOf(box.current));
    if (next === undefined) return;
    event.preventDefault();
    setActive(next);
    document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const indexUnder = (event: PointerEvent | React.MouseEvent): number | undefined => {
    const cell = event.target instanceof HTMLElement ? event.target.dataset["index"] : undefined;
    return cell === undefined ? undefined : Number(cell);
  };
  return (
    <div className="heat">
      <div
        ref={box}
        className={`heat-squares${squares.length > 240 ? " heat-dense" : ""}`}
        role="listbox"
        tabIndex={0}
        aria-label={`${label}: ${count(targets.length, "Application")}`}
        aria-activedescendant={focused ? `${id}-${active}` : undefined}
        onKeyDown={move}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onPointerOver={(event) => setHovered(indexUnder(event))}
        onPointerLeave={() => setHovered(undefined)}
        onClick={(event) => {
          const index = indexUnder(event);
          const square = index === undefined ? undefined : squares[index];
          if (index === undefined || square === undefined) return;
          setActive(index);
          onOpen(square.targets);
        }}
      >
        {pieces.map((start) => (
          <Piece
            key={start}
            id={id}
            start={start}
            squares={squares.slice(start, start + piece)}
            active={focused && active >= start && active < start + piece ? active : -1}
            text={filtered ? text : ""}
            group={filtered ? group : ""}
          />
        ))}
      </div>
      <Readout square={shown} size={squares[0]?.targets.length ?? 1} />
    </div>
  );
}

function columnsOf(box: HTMLElement | null): number {
  const cells = box?.querySelectorAll<HTMLElement>("[data-index]");
  const top = cells?.[0]?.offsetTop;
  if (cells === undefined || top === undefined) return 1;
  let columns = 0;
  while (columns < cells.length && cells[columns]?.offsetTop === top) columns += 1;
  return Math.max(1, columns);
}

interface PieceProperties {
  id: string;
  start: number;
  squares: Square[];
  active: number;
  text: string;
  group: string;
}

const Piece = memo(
  function Piece({ id, start, squares, active, text, group }: PieceProperties) {
    return squares.map((square, offset) => {
      const index = start + offset;
      const first = square.targets[0];
      const dim = !square.targets.some((target) => matches(target, text, group));
      return (
        <i
          key={index}
          id={`${id}-${index}`}
          data-index={index}
          role="option"
          aria-selected={index === active}
          aria-label={`${first?.name ?? ""}${square.targets.length > 1 ? ` and ${square.targets.length - 1} more` : ""}: ${targetLook(square.state).word}`}
          className={`square square-${square.state}${dim ? " square-dim" : ""}`}
        />
      );
    });
  },
  (left, right) =>
    left.active === right.active &&
    left.text === right.text &&
    left.group === right.group &&
    left.squares.length === right.squares.length &&
    left.squares.every((square, index) => sameSquare(square, right.squares[index])),
);

function sameSquare(left: Square, right: Square | undefined): boolean {
  return right !== undefined && left.state === right.state && left.targets.length === right.targets.length && left.targets[0]?.name === right.targets[0]?.name;
}

function Readout({ square, size }: { square: Square | undefined; size: number }) {
  const first = square?.targets[0];
  if (square === undefined || first === undefined) {
    return <p className="heat-readout heat-hint">{size > 1 ? `Each square stands for ${size}. ` : ""}Point at a square, or use the arrow keys.</p>;
  }
  const look = targetLook(square.state);
  return (
    <p className={`heat-readout tone-${look.tone}`}>
      <Glyph name={look.glyph} />
      <strong>{square.targets.length > 1 ? `${first.name} and ${square.targets.length - 1} more` : first.name}</strong>
      <span>
        {look.word} <Lasted from={first.since} />
      </span>
    </p>
  );
}
