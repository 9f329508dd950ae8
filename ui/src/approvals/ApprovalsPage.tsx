import { useState } from "react";
import type { Decision } from "../api/calls";
import * as calls from "../api/calls";
import type { Approval } from "../api/shapes";
import { asApiError } from "../live/source";
import { askForApprovals, useApprovals } from "../live/streams";
import { Anchor } from "../parts/Anchor";
import { FilterChips } from "../parts/FilterChips";
import { Glyph } from "../parts/Glyph";
import { applicationPath, rolloutPath, useQuery } from "../parts/route";
import { SearchField } from "../parts/SearchField";
import { Loading, Nothing, Outdated, Refused } from "../parts/Standing";
import { Lasted } from "../parts/time";
import { DecisionDialog } from "./DecisionDialog";
import { blastWords, byKind, inOrder, isGrave, kindWords, wordToType } from "./gravity";
import "./approvals.css";

/** Everything that waits for a person. */
export function ApprovalsPage() {
  const { value, error, again } = useApprovals();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<{ decision: Decision; approvals: Approval[] } | undefined>(undefined);
  const [refused, setRefused] = useState<ReadonlyMap<string, string>>(new Map());
  const query = useQuery();
  if (value === undefined) return error === undefined ? <Loading what="what waits for approval" /> : <Refused error={error} what="the approvals" again={again} />;
  if (value.length === 0) {
    return (
      <Nothing title="Nothing waits for you">
        <p>Prunes, deletions and stopped phases that need a person turn up here by themselves.</p>
      </Nothing>
    );
  }
  const kind = query.get("kind") ?? "";
  const text = (query.get("q") ?? "").toLowerCase();
  const shown = inOrder(value).filter((each) => (kind === "" || each.kind === kind) && (text === "" || `${each.object.name} ${each.project} ${each.requestedBy ?? ""}`.toLowerCase().includes(text)));
  const allowed = shown.filter((each) => each.allowed);
  const selected = allowed.filter((each) => chosen.has(each.id));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  // What a click will do for needs no dialog: the row itself shows all there is to read.
  const approve = (approval: Approval) => {
    if (wordToType([approval]) !== undefined) return setAsking({ decision: "approve", approvals: [approval] });
    const tell = (message: string) => setRefused((before) => new Map(before).set(approval.id, message));
    tell("");
    return void calls
      .decide("approve", [{ id: approval.id, setHash: approval.setHash }], "")
      .then((answer) => {
        const [item] = answer.items;
        if (item !== undefined && !item.ok) tell(item.message ?? "refused without a reason");
      })
      .catch((cause: unknown) => tell(asApiError(cause).message))
      .then(askForApprovals)
      .catch(() => undefined);
  };
  return (
    <>
      <Outdated error={error} again={again} />
      <header className="page-head">
        <h1 tabIndex={-1}>{value.length === 1 ? "One thing waits for a person" : `${value.length} things wait for a person`}</h1>
        <p className="quiet">{blastWords(value)} in all. Nothing of it happens before somebody says so.</p>
      </header>
      <div className="toolbar">
        <SearchField label="Find by name, project or person" />
        <FilterChips
          field="kind"
          label="Show only"
          choices={(Object.keys(kindWords) as Approval["kind"][]).map((each) => ({ value: each, label: kindWords[each].title, count: value.filter((approval) => approval.kind === each).length })).filter((choice) => choice.count > 0)}
        />
      </div>
      {allowed.length > 0 && (
        <div className="bulk" role="group" aria-label="Several at once">
          <label className="check">
            <input
              type="checkbox"
              checked={selected.length === allowed.length}
              ref={(box) => {
                if (box !== null) box.indeterminate = selected.length > 0 && selected.length < allowed.length;
              }}
              onChange={() => setChosen(selected.length === allowed.length ? new Set() : new Set(allowed.map((each) => each.id)))}
            />
            <span>{selected.length === 0 ? "Choose all" : `${selected.length} chosen`}</span>
          </label>
          {selected.length > 0 && (
            <>
              <button type="button" className="button" onClick={() => setAsking({ decision: "reject", approvals: selected })}>
                Reject chosen
              </button>
              <button type="button" className="button button-main" onClick={() => setAsking({ decision: "approve", approvals: selected })}>
                <Glyph name="approve" /> Approve chosen
              </button>
            </>
          )}
          {selected.length === 0 && allowed.length > 1 && (
            <button type="button" className="button" onClick={() => setAsking({ decision: "approve", approvals: allowed })}>
              <Glyph name="approve" /> Approve all {allowed.length}
            </button>
          )}
        </div>
      )}
      {shown.length === 0 && <Nothing title="Nothing that the filter asks for" />}
      <ul className="approvals">
        {shown.map((approval) => (
          <li key={approval.id}>
            <Row
              approval={approval}
              chosen={chosen.has(approval.id)}
              refused={refused.get(approval.id) ?? ""}
              onToggle={() => toggle(approval.id)}
              onApprove={() => approve(approval)}
              onReject={() => setAsking({ decision: "reject", approvals: [approval] })}
            />
          </li>
        ))}
      </ul>
      {asking !== undefined && (
        <DecisionDialog
          decision={asking.decision}
          approvals={asking.approvals}
          onClose={() => {
            setAsking(undefined);
            setChosen(new Set());
          }}
        />
      )}
    </>
  );
}

interface RowProperties {
  approval: Approval;
  chosen: boolean;
  refused: string;
  onToggle: () => void;
  onApprove: () => void;
  onReject: () => void;
}

function Row({ approval, chosen, refused, onToggle, onApprove, onReject }: RowProperties) {
  const { object, resources, allowed } = approval;
  const grave = isGrave(approval);
  const path = object.kind === "Application" ? applicationPath(object.namespace, object.name) : rolloutPath(object.namespace, object.name);
  return (
    <article className={`approval${grave ? " approval-grave" : ""}${chosen ? " approval-chosen" : ""}`} aria-label={`${kindWords[approval.kind]?.title ?? approval.kind} of ${object.name}`}>
      {allowed && <input type="checkbox" className="approval-check" checked={chosen} onChange={onToggle} aria-label={`Choose ${object.name}`} />}
      <div className="approval-what">
        <p className="approval-kind">
          {kindWords[approval.kind]?.title ?? approval.kind}
          {grave && (
            <span className="grave">
              <Glyph name="person" /> grave
            </span>
          )}
        </p>
        <h2>
          <Anchor href={path}>{object.name}</Anchor>
        </h2>
        <p>{approval.why}</p>
        <ul className="kinds" aria-label="What goes">
          {byKind(resources).map(({ kind, number, grave: heavy }) => (
            <li key={kind} className={heavy ? "kind kind-grave" : "kind"}>
              {heavy && <Glyph name="person" label="Grave" />}
              {number} × {kind}
            </li>
          ))}
        </ul>
        {resources.length > 0 && (
          <details className="plan">
            <summary>{resources.length === 1 ? "Which one" : `Which ${resources.length}`}</summary>
            <ul className="names">
              {resources.slice(0, 100).map((resource) => (
                <li key={`${resource.group}/${resource.kind}/${resource.namespace ?? ""}/${resource.name}`}>
                  <span className="quiet">{resource.kind}</span> {resource.namespace !== undefined && resource.namespace !== "" ? `${resource.namespace}/` : ""}
                  {resource.name} {resource.approved && <span className="tone-good">approved</span>}
                </li>
              ))}
              {resources.length > 100 && <li>and {resources.length - 100} more</li>}
            </ul>
          </details>
        )}
        {refused !== "" && (
          <p className="notice tone-bad" role="alert">
            <Glyph name="failed" /> {refused}
          </p>
        )}
      </div>
      <dl className="approval-facts">
        <div>
          <dt>Waiting</dt>
          <dd>
            {approval.since === undefined ? "not known since when" : <>for <Lasted from={approval.since} /></>}
          </dd>
        </div>
        {approval.requestedBy !== undefined && (
          <div>
            <dt>Asked by</dt>
            <dd>{approval.requestedBy}</dd>
          </div>
        )}
        <div>
          <dt>Project</dt>
          <dd>{approval.project}</dd>
        </div>
        <div>
          <dt>At most</dt>
          <dd>{blastWords([approval])}</dd>
        </div>
      </dl>
      <div className="approval-buttons">
        {allowed ? (
          <>
            <button type="button" className={grave ? "button button-grave" : "button button-main"} onClick={onApprove}>
              <Glyph name="approve" /> Approve
            </button>
            <button type="button" className="button" onClick={onReject}>
              Reject
            </button>
          </>
        ) : (
          <p className="denied">
            <Glyph name="lock" />
            {approval.whyNot ?? "Your account may not approve this."}
          </p>
        )}
      </div>
    </article>
  );
}
