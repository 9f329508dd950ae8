import type { Application, ResourceRef, ResourceStatus } from "../api/shapes";
import { Chip } from "../parts/Chip";
import { Dialog } from "../parts/Dialog";
import { Glyph } from "../parts/Glyph";
import { healthLook, syncLook } from "../parts/tone";
import { DiffView } from "./DiffView";
import { resourceKey as keyOf } from "./graph";

interface Properties {
  application: Application;
  resourceKey: string;
  mayApprove: (resource: ResourceStatus) => boolean | undefined;
  onApprove: (resource: ResourceStatus) => void;
  onClose: () => void;
}

/** One resource: how it fares, and how it differs from git. What a controller made of it is not in git. */
export function ResourceDialog({ application, resourceKey, mayApprove, onApprove, onClose }: Properties) {
  const { name, namespace } = application.metadata;
  const status = (application.status?.resources ?? []).find((each) => keyOf(each) === resourceKey);
  const ref: ResourceRef = status ?? refOf(resourceKey);
  return (
    <Dialog title={`${ref.kind} ${ref.name}`} wide onClose={onClose} command={`baton app diff ${name}`}>
      {status !== undefined && (
        <p className="chips">
          <Chip look={healthLook(status.health?.status)} />
          <Chip look={syncLook(status.status)} quiet />
        </p>
      )}
      {status?.health?.message !== undefined && <p>{status.health.message}</p>}
      {status?.requiresDeletionApproval === true && (
        <div className="notice tone-person">
          <Glyph name="person" />
          <span>Its deletion waits for approval.</span>
          {mayApprove(status) === true && (
            <button type="button" className="button button-small" onClick={() => onApprove(status)}>
              Approve Deletion
            </button>
          )}
        </div>
      )}
      {status === undefined ? <p className="quiet">Made by another resource; git says nothing of it.</p> : <DiffView namespace={namespace} name={name} only={ref} />}
    </Dialog>
  );
}

function refOf(key: string): ResourceRef {
  const [group = "", kind = "", namespace = "", ...name] = key.split("/");
  return { group, kind, namespace, name: name.join("/") };
}
