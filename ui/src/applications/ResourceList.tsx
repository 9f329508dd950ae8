import type { ResourceStatus } from "../api/shapes";
import { Glyph } from "../parts/Glyph";
import { healthLook, syncLook } from "../parts/tone";
import { VirtualRows } from "../parts/VirtualRows";
import { resourceKey } from "./graph";

interface Properties {
  resources: ResourceStatus[];
  mayApprove: (resource: ResourceStatus) => boolean | undefined;
  onChoose: (key: string) => void;
  onApprove: (resource: ResourceStatus) => void;
}

/** The same resources as rows; what waits for a person first. */
export function ResourceList({ resources, mayApprove, onChoose, onApprove }: Properties) {
  const rank = (resource: ResourceStatus) => (resource.requiresDeletionApproval === true ? 0 : resource.status === "OutOfSync" ? 1 : 2);
  const sorted = [...resources].sort((left, right) => rank(left) - rank(right) || left.kind.localeCompare(right.kind) || left.name.localeCompare(right.name));
  return (
    <VirtualRows
      items={sorted}
      height={3}
      label="Resources"
      keyOf={resourceKey}
      row={(resource) => {
        const health = healthLook(resource.health?.status);
        const sync = syncLook(resource.status);
        const waits = resource.requiresDeletionApproval === true;
        return (
          <div className={`resource-row${waits ? " resource-waits" : ""}`}>
            <button type="button" className="resource-name" onClick={() => onChoose(resourceKey(resource))}>
              <span className={`tone-${resource.health?.status === undefined ? "calm" : health.tone}`}>
                <Glyph name={resource.health?.status === undefined ? "idle" : health.glyph} label={resource.health?.status === undefined ? "No health" : health.word} />
              </span>
              <span className="quiet">{resource.kind}</span>
              <strong>{resource.name}</strong>
            </button>
            <span className="quiet resource-namespace">{resource.namespace}</span>
            <span className={`sign tone-${sync.tone}`}>
              <Glyph name={sync.glyph} /> {sync.word}
            </span>
            {waits && mayApprove(resource) === true && (
              <button type="button" className="button button-small" onClick={() => onApprove(resource)}>
                Approve Deletion
              </button>
            )}
            {waits && mayApprove(resource) !== true && (
              <span className="denied">
                <Glyph name="lock" /> waits for approval
              </span>
            )}
          </div>
        );
      }}
    />
  );
}
