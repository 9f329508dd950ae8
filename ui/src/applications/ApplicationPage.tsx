import { useState } from "react";
import * as calls from "../api/calls";
import type { Application, ResourceStatus } from "../api/shapes";
import { asApiError, useLoaded } from "../live/source";
import { useApplication } from "../live/streams";
import { Anchor, Outward } from "../parts/Anchor";
import { Chip } from "../parts/Chip";
import { shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { rolloutPath, setQuery, useQuery } from "../parts/route";
import { Loading, Outdated, Refused } from "../parts/Standing";
import { Ago, Lasted } from "../parts/time";
import { healthLook, syncLook } from "../parts/tone";
import { ApproveDialog } from "./ApproveDialog";
import { DiffView } from "./DiffView";
import { resourceKey } from "./graph";
import { Events, History } from "./Past";
import { ResourceDialog } from "./ResourceDialog";
import { ResourceGraph } from "./ResourceGraph";
import { ResourceList } from "./ResourceList";
import { approvalRight, useRights } from "./rights";
import { SyncDialog } from "./SyncDialog";
import "./applications.css";

const tabs = [["resources", "Resources"], ["diff", "Difference"], ["events", "Events"], ["history", "History"]] as const;

/** One Application: what it consists of, how it differs, what happened to it. */
export default function ApplicationPage({ namespace, name }: { namespace: string; name: string }) {
  const { value: application, error, again } = useApplication(namespace, name);
  if (application === undefined) return error === undefined ? <Loading what={name} /> : <Refused error={error} what={`the Application ${namespace}/${name}`} again={again} />;
  return (
    <>
      <Outdated error={error} again={again} />
      <Shown application={application} again={again} />
    </>
  );
}

function Shown({ application, again }: { application: Application; again: () => void }) {
  const { name, namespace } = application.metadata;
  const resources = application.status?.resources ?? [];
  const waitingList = resources.filter((resource) => resource.requiresDeletionApproval === true);
  const waiting = new Map(waitingList.map((resource) => [resourceKey(resource), resource]));
  const may = useRights(application, ["sync", ...waitingList.map(approvalRight)]);
  const [syncing, setSyncing] = useState(false);
  const [approving, setApproving] = useState<ResourceStatus | undefined>(undefined);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const query = useQuery();
  const tab = query.get("tab") ?? "resources";
  return (
    <>
      <Head application={application} maySync={may("sync")} onSync={() => setSyncing(true)} />
      <Notices application={application} waiting={waitingList} />
      <div className="tabs" role="tablist" aria-label="What to see" onKeyDown={roveTabs}>
        {tabs.map(([id, label]) => (
          <button key={id} type="button" role="tab" id={`tab-${id}`} aria-selected={tab === id} aria-controls="tab-panel" tabIndex={tab === id ? 0 : -1} onClick={() => setQuery("tab", id === "resources" ? undefined : id)}>
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`}>
        {tab === "resources" && <Resources application={application} resources={resources} waiting={waiting} mayApprove={(resource) => may(approvalRight(resource))} chosen={chosen} onChoose={setChosen} onApprove={setApproving} />}
        {tab === "diff" && <DiffView namespace={namespace} name={name} at={application.status?.reconciledAt} />}
        {tab === "events" && <Events namespace={namespace} name={name} />}
        {tab === "history" && <History application={application} maySync={may("sync")} again={again} />}
      </div>
      {syncing && <SyncDialog application={application} onClose={() => setSyncing(false)} />}
      {approving !== undefined && <ApproveDialog application={application} resource={approving} onClose={() => setApproving(undefined)} />}
      {chosen !== undefined && chosen !== "application" && approving === undefined && (
        <ResourceDialog application={application} resourceKey={chosen} mayApprove={(resource) => may(approvalRight(resource))} onApprove={setApproving} onClose={() => setChosen(undefined)} />
      )}
    </>
  );
}

function roveTabs(event: React.KeyboardEvent<HTMLElement>): void {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const next = all[(all.findIndex((tab) => tab === document.activeElement) + (event.key === "ArrowRight" ? 1 : -1) + all.length) % all.length];
  event.preventDefault();
  next?.focus();
  next?.click();
}

function Head({ application, maySync, onSync }: { application: Application; maySync: boolean | undefined; onSync: () => void }) {
  const { metadata, spec, status } = application;
  const [error, setError] = useState<string | undefined>(undefined);
  const source = spec.source ?? spec.sources?.[0];
  const owner = metadata.ownerReferences?.find((each) => each.kind === "ApplicationSet");
  const running = status?.operationState?.phase === "Running";
  const lookAgain = () => {
    setError(undefined);
    calls.application(metadata.namespace, metadata.name, "normal").then(() => undefined, (cause: unknown) => setError(asApiError(cause).message));
  };
  const terminate = () => {
    calls.terminateOperation(metadata.namespace, metadata.name).then(() => setError(undefined), (cause: unknown) => setError(asApiError(cause).message));
  };
  return (
    <header className="app-head">
      <p className="crumbs">
        <Anchor href="/applications">Applications</Anchor> <Glyph name="chevron" /> <span>{metadata.namespace}</span>
      </p>
      <div className="rollout-title">
        <h1 tabIndex={-1}>{metadata.name}</h1>
        <p className="chips">
          <Chip look={healthLook(status?.health?.status)} large />
          <Chip look={syncLook(status?.sync?.status)} quiet />
        </p>
        <div className="actions">
          <button type="button" className="button" onClick={lookAgain} title="Compare with git again">
            <Glyph name="search" /> Look again
          </button>
          {maySync === true && running && (
            <button type="button" className="button" onClick={terminate}>
              <Glyph name="aborted" /> Stop the operation
            </button>
          )}
          {maySync === true && (
            <button type="button" className="button button-main" onClick={onSync} disabled={metadata.deletionTimestamp !== undefined}>
              <Glyph name="retry" /> Sync
            </button>
          )}
          {maySync === false && (
            <span className="denied">
              <Glyph name="lock" /> Syncing needs the right applications, sync
            </span>
          )}
        </div>
      </div>
      {status?.health?.message !== undefined && status.health.message !== "" && <p className="rollout-reason">{status.health.message}</p>}
      {error !== undefined && (
        <p className="notice tone-bad" role="alert">
          {error}
        </p>
      )}
      <dl className="strip">
        <div>
          <dt>Source</dt>
          <dd>
            <Outward href={source?.repoURL}>{source?.repoURL ?? "none"}</Outward> {source?.path ?? source?.chart}
          </dd>
        </div>
        <div>
          <dt>Revision</dt>
          <dd>
            {source?.targetRevision ?? "HEAD"} → <code>{shortRevision(status?.sync?.revision)}</code>
          </dd>
        </div>
        <div>
          <dt>Cluster</dt>
          <dd>
            {spec.destination.name ?? spec.destination.server} / {spec.destination.namespace}
          </dd>
        </div>
        <div>
          <dt>Project</dt>
          <dd>{spec.project}</dd>
        </div>
        {owner !== undefined && (
          <div>
            <dt>Set</dt>
            <dd>
              <Anchor href={rolloutPath(metadata.namespace, owner.name)}>{owner.name}</Anchor>
            </dd>
          </div>
        )}
        {status?.operationState?.startedAt !== undefined && (
          <div>
            <dt>{running ? "Syncing for" : "Last sync"}</dt>
            <dd>{running ? <Lasted from={status.operationState.startedAt} /> : <Ago time={status.operationState.finishedAt} />}</dd>
          </div>
        )}
      </dl>
    </header>
  );
}

function Notices({ application, waiting }: { application: Application; waiting: ResourceStatus[] }) {
  const { status, metadata } = application;
  const operation = status?.operationState;
  const conditions = status?.conditions ?? [];
  return (
    <>
      {waiting.length > 0 && (
        <p className="notice tone-person">
          <Glyph name="person" />
          <span>
            {waiting.length === 1 ? "One resource waits" : `${waiting.length} resources wait`} for approval of {waiting.length === 1 ? "its" : "their"} deletion. Nothing goes before that. <Anchor href="/approvals">See all approvals</Anchor>
          </span>
        </p>
      )}
      {metadata.deletionTimestamp !== undefined && (
        <p className="notice tone-leaving">
          <Glyph name="leaving" /> <span>This Application is being deleted, since <Ago time={metadata.deletionTimestamp} />.</span>
        </p>
      )}
      {operation !== undefined && operation.phase !== "Succeeded" && !(waiting.length > 0 && operation.phase === "Running") && operation.message !== undefined && operation.message !== "" && (
        <p className={`notice tone-${operation.phase === "Running" ? "active" : "bad"}`}>
          <Glyph name={operation.phase === "Running" ? "running" : "failed"} /> <span>{operation.message}</span>
        </p>
      )}
      {conditions.slice(0, 5).map((condition) => (
        <p key={condition.type} className={`notice tone-${condition.type.endsWith("Error") ? "bad" : "person"}`}>
          <Glyph name="person" /> <span>{condition.message}</span>
        </p>
      ))}
    </>
  );
}

interface ResourcesProperties {
  application: Application;
  resources: ResourceStatus[];
  waiting: ReadonlyMap<string, ResourceStatus>;
  chosen: string | undefined;
  mayApprove: (resource: ResourceStatus) => boolean | undefined;
  onChoose: (key: string) => void;
  onApprove: (resource: ResourceStatus) => void;
}

function Resources({ application, resources, waiting, chosen, mayApprove, onChoose, onApprove }: ResourcesProperties) {
  const { name, namespace } = application.metadata;
  const asList = useQuery().get("as") === "list";
  // The tree is asked for again when the Application has been looked at anew.
  const tree = useLoaded(`tree ${namespace}/${name} ${application.status?.reconciledAt ?? ""}/${application.status?.operationState?.finishedAt ?? ""}`, () => calls.resourceTree(namespace, name));
  return (
    <>
      <div className="toolbar" role="group" aria-label="Shown as">
        <button type="button" className="filter" aria-pressed={!asList} onClick={() => setQuery("as", undefined)}>
          <Glyph name="tree" /> Graph
        </button>
        <button type="button" className="filter" aria-pressed={asList} onClick={() => setQuery("as", "list")}>
          <Glyph name="list" /> List
        </button>
      </div>
      {asList ? (
        <ResourceList resources={resources} mayApprove={mayApprove} onChoose={onChoose} onApprove={onApprove} />
      ) : tree.value === undefined ? (
        tree.error === undefined ? <Loading what="its resources" /> : <Refused error={tree.error} what="its resources" again={tree.again} />
      ) : (
        <ResourceGraph application={application} nodes={tree.value} waiting={waiting} chosen={chosen} mayApprove={mayApprove} onChoose={onChoose} onApprove={onApprove} />
      )}
    </>
  );
}
