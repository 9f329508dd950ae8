import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import type { Application, ResourceStatus, TreeNode } from "../api/shapes";
import { Glyph } from "../parts/Glyph";
import { healthLook } from "../parts/tone";
import { edgePath, layoutOf, neighbour, nodeHeight, nodeWidth, resourceKey, treeOf, type Placed } from "./graph";

interface Properties {
  application: Application;
  nodes: TreeNode[];
  waiting: ReadonlyMap<string, ResourceStatus>;
  chosen: string | undefined;
  mayApprove: (resource: ResourceStatus) => boolean | undefined;
  onChoose: (key: string) => void;
  onApprove: (resource: ResourceStatus) => void;
}

const zooms = [0.5, 0.7, 0.85, 1, 1.25];

/** The resources as a graph. Lines are drawn, nodes are buttons; arrows lead along the lines. */
export function ResourceGraph({ application, nodes, waiting, chosen, mayApprove, onChoose, onApprove }: Properties) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [zoom, setZoom] = useState(3);
  const [stop, setStop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const { metadata, status } = application;
  const layout = useMemo(() => layoutOf(treeOf(metadata.name, status?.health?.status, nodes, opened)), [metadata.name, status?.health?.status, nodes, opened]);
  const scale = zooms[zoom] ?? 1;
  const move = (event: KeyboardEvent) => {
    const next = neighbour(event.key, Math.min(stop, layout.placed.length - 1), layout.placed);
    if (next === undefined) return;
    event.preventDefault();
    setStop(next);
    box.current?.querySelector<HTMLElement>(`[data-node="${next}"]`)?.focus();
  };
  const choose = ({ node }: Placed) => {
    if (node.ref === undefined && node.key !== "application") setOpened(new Set(opened).add(node.key));
    else onChoose(node.key);
  };
  return (
    <div className="graph">
      <div className="graph-tools" role="group" aria-label="Size">
        <button type="button" className="button-bare" aria-label="Smaller" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
          −
        </button>
        <button type="button" className="button-bare" aria-label="Larger" disabled={zoom === zooms.length - 1} onClick={() => setZoom(zoom + 1)}>
          +
        </button>
      </div>
      <div ref={box} className="graph-view" onKeyDown={move}>
        <div className="graph-size" style={{ width: `${layout.width * scale}px`, height: `${layout.height * scale}px` }}>
          <div className="graph-canvas" style={{ width: `${layout.width}px`, height: `${layout.height}px`, transform: `scale(${scale})` }}>
            <svg width={layout.width} height={layout.height} aria-hidden>
              {layout.placed.map((each, index) => {
                const parent = each.parent === undefined ? undefined : layout.placed[each.parent];
                return parent === undefined ? null : <path key={index} className="graph-edge" d={edgePath(parent, each)} />;
              })}
            </svg>
            {layout.placed.map((each, index) => (
              <Node
                key={each.node.key}
                each={each}
                index={index}
                stop={index === Math.min(stop, layout.placed.length - 1)}
                chosen={each.node.key === chosen}
                waits={each.node.ref === undefined ? undefined : waiting.get(resourceKey(each.node.ref))}
                mayApprove={mayApprove}
                onFocus={setStop}
                onChoose={choose}
                onApprove={onApprove}
              />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

interface NodeProperties {
  each: Placed;
  index: number;
  stop: boolean;
  chosen: boolean;
  waits: ResourceStatus | undefined;
  mayApprove: (resource: ResourceStatus) => boolean | undefined;
  onFocus: (index: number) => void;
  onChoose: (placed: Placed) => void;
  onApprove: (resource: ResourceStatus) => void;
}

function Node({ each, index, stop, chosen, waits, mayApprove, onFocus, onChoose, onApprove }: NodeProperties) {
  const { node } = each;
  const look = healthLook(node.health);
  const known = node.health !== undefined;
  return (
    <div className={`node${waits === undefined ? "" : " node-waits"}${chosen ? " node-chosen" : ""}`} style={{ left: `${each.x}px`, top: `${each.y}px`, width: `${nodeWidth}px`, height: `${nodeHeight}px` }}>
      <button
        type="button"
        data-node={index}
        className="node-face"
        tabIndex={stop ? 0 : -1}
        title={`${node.subtitle} ${node.title}`}
        aria-label={`${node.subtitle} ${node.title}${known ? `, ${look.word}` : ""}${waits === undefined ? "" : ", waits for approval of its deletion"}`}
        onFocus={() => onFocus(index)}
        onClick={() => onChoose(each)}
      >
        <span className={`node-health tone-${known ? look.tone : "calm"}`}>
          <Glyph name={known ? look.glyph : "idle"} />
        </span>
        <span className="node-text">
          <b>{node.title}</b>
          <span>
            {node.subtitle}
            {node.info[0] !== undefined && ` · ${node.info[0]}`}
          </span>
        </span>
      </button>
      {waits !== undefined && mayApprove(waits) === true && (
        <button type="button" className="node-approve" onClick={() => onApprove(waits)} aria-label={`Approve Deletion of ${node.title}`}>
          Approve Deletion
        </button>
      )}
      {waits !== undefined && mayApprove(waits) !== true && (
        <span className="node-approve node-denied" title="Your account may not approve this deletion">
          <Glyph name="lock" /> waits for approval
        </span>
      )}
    </div>
  );
}
