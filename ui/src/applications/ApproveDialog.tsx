import { useState } from "react";
import * as calls from "../api/calls";
import type { Application, ResourceStatus } from "../api/shapes";
import { asApiError } from "../live/source";
import { Dialog } from "../parts/Dialog";
import { commandLine } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { namespaceFlag } from "../rollout/effect";

const graveKinds = new Set(["Namespace", "PersistentVolumeClaim", "PersistentVolume", "CustomResourceDefinition"]);

/** Approves the deletion of one resource. */
export function ApproveDialog({ application, resource, onClose }: { application: Application; resource: ResourceStatus; onClose: () => void }) {
  const { name, namespace } = application.metadata;
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const grave = graveKinds.has(resource.kind);
  const others = (application.status?.resources ?? []).filter((each) => each.requiresDeletionApproval === true).length - 1;
  const send = () => {
    setBusy(true);
    calls.approveDeletionOf(namespace, name, resource).then(onClose, (cause: unknown) => {
      setError(asApiError(cause).message);
      setBusy(false);
    });
  };
  return (
    <Dialog
      title={`Approve the deletion of ${resource.name}`}
      command={commandLine(["baton", "app", "actions", "run", name, "approve-deletion", "--kind", resource.kind, "--resource-name", resource.name, ...namespaceFlag(namespace)])}
      confirm="Approve Deletion"
      grave={grave}
      disabled={grave && typed !== resource.name}
      busy={busy}
      error={error}
      onConfirm={send}
      onClose={onClose}
    >
      <p>
        The {resource.kind} <b>{resource.name}</b>
        {resource.namespace !== undefined && resource.namespace !== "" && <> in {resource.namespace}</>} is deleted for good, once everything that waits is approved.
      </p>
      {others > 0 && <p>{others === 1 ? "One more resource waits" : `${others} more resources wait`} in this operation; nothing goes before they are approved too.</p>}
      {grave && (
        <>
          <p className="notice tone-bad">
            <Glyph name="person" /> {resource.kind === "Namespace" ? "Everything inside it goes too." : resource.kind === "CustomResourceDefinition" ? "Every object of this kind goes too." : "The data on it goes too."}
          </p>
          <label className="field">
            <span>
              Type <b>{resource.name}</b> to approve
            </span>
            <input value={typed} autoComplete="off" spellCheck={false} onChange={(event) => setTyped(event.target.value)} />
          </label>
        </>
      )}
    </Dialog>
  );
}
