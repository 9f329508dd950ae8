import { useState } from "react";
import * as calls from "../api/calls";
import type { ActionName, Plan, Rollout, Target } from "../api/shapes";
import { asApiError, useLoaded } from "../live/source";
import { Dialog } from "../parts/Dialog";
import { count } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { targetLook } from "../parts/tone";
import { commandFor, effectOf, targetsOf, wordings } from "./effect";

const mostNamed = 12;

/** What a word would do, and then the word. */
export function ActionDialog({ action, rollout, application: given, onClose }: { action: ActionName; rollout: Rollout; application?: string | undefined; onClose: () => void }) {
  const wording = wordings[action];
  const [application, setApplication] = useState(given ?? "");
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const { namespace, name } = rollout;
  const plan = useLoaded(`plan ${namespace}/${name}`, () => calls.plan(namespace, name));
  const effect = effectOf(action, rollout, application);
  const word = { action, ...(application === "" ? {} : { application }), ...(rollout.run === undefined ? {} : { run: rollout.run }) };
  const choices = targetsOf(rollout).filter((target) => target.state === "Failed" || (action === "skip" && target.state !== "Healthy"));
  const unnamed = wording.of === "application" && application === "";
  // The server tells what it would do; what the board gives away is shown until it has, and where it does not.
  const preview = useLoaded(`preview ${namespace}/${name} ${action} ${application} of`, async () => (unnamed ? undefined : calls.preview(namespace, name, word)));
  const sentences = preview.value?.split("\n") ?? effect.sentences;
  const untyped = action === "approve-deletion" && typed !== name;
  const act = () => {
    setBusy(true);
    setError(undefined);
    calls
      .act(namespace, name, { ...word, ...(reason === "" ? {} : { reason }) })
      .then(onClose, (cause: unknown) => {
        const { status, message } = asApiError(cause);
        setError(status === 409 ? `This run is over, or another has begun: ${message}. Look at the board, and ask again.` : message);
        setBusy(false);
      });
  };
  return (
    <Dialog
      title={wording.title(name)}
      command={commandFor(action, rollout, application)}
      confirm={wording.label}
      grave={wording.grave}
      disabled={unnamed || untyped}
      busy={busy}
      error={error}
      onConfirm={act}
      onClose={onClose}
    >
      {wording.of !== "set" && given === undefined && (
        <label className="field">
          <span>Application</span>
          <select value={application} onChange={(event) => setApplication(event.target.value)}>
            <option value="">{wording.of === "either" ? "All that failed" : "Choose one"}</option>
            {choices.map((target) => (
              <option key={target.name} value={target.name}>
                {target.name} ({targetLook(target.state).word.toLowerCase()})
              </option>
            ))}
          </select>
        </label>
      )}
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <Named targets={effect.targets} />
      <PlanPreview plan={plan.value} loading={plan.loading} error={plan.error?.message} />
      <label className="field">
        <span>Reason, for the audit log</span>
        <input value={reason} maxLength={400} placeholder="Optional" onChange={(event) => setReason(event.target.value)} />
      </label>
      {action === "approve-deletion" && (
        <label className="field">
          <span>Type {name} to approve</span>
          <input value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
    </Dialog>
  );
}

function Named({ targets }: { targets: Target[] }) {
  if (targets.length === 0) return null;
  return (
    <ul className="named" aria-label="Applications it touches">
      {targets.slice(0, mostNamed).map((target) => {
        const look = targetLook(target.state);
        return (
          <li key={target.name} className={`tone-${look.tone}`}>
            <Glyph name={look.glyph} /> {target.name}
          </li>
        );
      })}
      {targets.length > mostNamed && <li>and {targets.length - mostNamed} more</li>}
    </ul>
  );
}

const planWords = { create: "created", update: "updated", delete: "deleted", none: "left as they are" } as const;

function PlanPreview({ plan, loading, error }: { plan: Plan | undefined; loading: boolean; error: string | undefined }) {
  if (loading) return <p className="quiet" role="status">Working out the plan …</p>;
  if (error !== undefined) return <p className="quiet">The plan cannot be shown: {error}.</p>;
  if (plan === undefined) return null;
  const items = plan.items ?? [];
  const kinds = (["create", "update", "delete", "none"] as const).map((kind) => ({ kind, number: items.filter((item) => item.action === kind).length }));
  const told = kinds.filter(({ number }) => number > 0).map(({ kind, number }) => `${number} ${planWords[kind]}`);
  return (
    <details className="plan" open={items.length <= mostNamed}>
      <summary>Plan of the set as it stands: {told.length === 0 ? "nothing would change" : told.join(", ")}</summary>
      {plan.text !== "" && <pre tabIndex={0}>{plan.text}</pre>}
      {items.length > 0 && plan.text === "" && <p>{count(items.length, "Application")}</p>}
    </details>
  );
}
