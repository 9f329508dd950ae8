import { useState } from "react";
import * as calls from "../api/calls";
import type { Approval } from "../api/shapes";
import { asApiError } from "../live/source";
import { askForApprovals } from "../live/streams";
import { Dialog } from "../parts/Dialog";
import { count } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { blastWords, byKind, commandFor, isGrave, kindWords, wordToType } from "./gravity";

const mostListed = 60;

/** Approves or rejects, one or several; each item stands for exactly the resources that were shown. */
export function DecisionDialog({ decision, approvals, onClose }: { decision: calls.Decision; approvals: Approval[]; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const word = decision === "approve" ? wordToType(approvals) : undefined;
  const [only] = approvals;
  const resources = approvals.flatMap((approval) => approval.resources);
  const grave = decision === "approve" && approvals.some(isGrave);
  const send = () => {
    setBusy(true);
    setError(undefined);
    calls
      .decide(decision, approvals.map(({ id, setHash }) => ({ id, setHash })), reason)
      .then(async (answer) => {
        await askForApprovals().catch(() => undefined);
        const refused = answer.items.filter((item) => !item.ok);
        if (refused.length === 0) onClose();
        else {
          setError(`${refused.length} of ${answer.items.length} refused: ${[...new Set(refused.map((item) => item.message ?? "no reason given"))].join("; ")}`);
          setBusy(false);
        }
      })
      .catch((cause: unknown) => {
        setError(asApiError(cause).message);
        setBusy(false);
      });
  };
  const title = approvals.length === 1 && only !== undefined ? `${decision === "approve" ? "Approve" : "Reject"}: ${only.object.name}` : `${decision === "approve" ? "Approve" : "Reject"} ${approvals.length} requests`;
  return (
    <Dialog
      title={title}
      command={commandFor(decision, approvals, reason)}
      confirm={decision === "approve" ? "Approve" : "Reject"}
      grave={grave || decision === "reject"}
      disabled={(word !== undefined && typed !== word) || (decision === "reject" && reason.trim() === "")}
      busy={busy}
      error={error}
      onConfirm={send}
      onClose={onClose}
    >
      {[...new Set(approvals.map((approval) => approval.kind))].map((kind) => (
        <p key={kind}>{decision === "approve" ? kindWords[kind]?.approving : kindWords[kind]?.rejecting}</p>
      ))}
      {decision === "approve" && (
        <p className={grave ? "notice tone-bad" : "notice tone-person"}>
          <Glyph name="person" /> Goes for good: {blastWords(approvals)}.
        </p>
      )}
      {resources.length > 0 && (
        <ul className="kinds" aria-label="Kinds">
          {byKind(resources).map(({ kind, number, grave: heavy }) => (
            <li key={kind} className={heavy ? "kind kind-grave" : "kind"}>
              {heavy && <Glyph name="person" label="Grave" />}
              {number} × {kind}
            </li>
          ))}
        </ul>
      )}
      {resources.length > 0 && (
        <details className="plan" open={resources.length <= 8}>
          <summary>{count(resources.length, "resource")} in full</summary>
          <ul className="names">
            {resources.slice(0, mostListed).map((resource) => (
              <li key={`${resource.group}/${resource.kind}/${resource.namespace ?? ""}/${resource.name}`}>
                <span className="quiet">{resource.kind}</span> {resource.namespace !== undefined && resource.namespace !== "" ? `${resource.namespace}/` : ""}
                {resource.name}
              </li>
            ))}
            {resources.length > mostListed && <li>and {resources.length - mostListed} more</li>}
          </ul>
        </details>
      )}
      <label className="field">
        <span>{decision === "reject" ? "Reason, which the person who asked will read" : "Reason, for the audit log"}</span>
        <input value={reason} maxLength={400} required={decision === "reject"} placeholder={decision === "reject" ? "" : "Optional"} onChange={(event) => setReason(event.target.value)} />
      </label>
      {word !== undefined && (
        <label className="field">
          <span>
            Type <b>{word}</b> to approve
          </span>
          <input value={typed} autoComplete="off" spellCheck={false} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
    </Dialog>
  );
}
