import { useState } from "react";
import * as calls from "../api/calls";
import type { Application, ResourceStatus } from "../api/shapes";
import { asApiError } from "../live/source";
import { Dialog } from "../parts/Dialog";
import { commandLine } from "../parts/format";
import { namespaceFlag } from "../rollout/effect";
import { resourceKey } from "./graph";

interface Wish {
  revision: string;
  prune: boolean;
  dryRun: boolean;
  force: boolean;
  replace: boolean;
  serverSide: boolean;
  outOfSyncOnly: boolean;
}

const nothing: Wish = { revision: "", prune: false, dryRun: false, force: false, replace: false, serverSide: false, outOfSyncOnly: false };

export function requestFor(wish: Wish, chosen: ResourceStatus[]): calls.SyncRequest {
  const items = [wish.replace && "Replace=true", wish.serverSide && "ServerSideApply=true", wish.outOfSyncOnly && "ApplyOutOfSyncOnly=true"].filter((item): item is string => item !== false);
  return {
    prune: wish.prune,
    dryRun: wish.dryRun,
    strategy: { hook: { force: wish.force } },
    ...(wish.revision === "" ? {} : { revision: wish.revision }),
    ...(items.length === 0 ? {} : { syncOptions: { items } }),
    ...(chosen.length === 0 ? {} : { resources: chosen.map(({ group, kind, name, namespace }) => ({ group: group ?? "", kind, name, ...(namespace === undefined ? {} : { namespace }) })) }),
  };
}

export function commandFor(application: { name: string; namespace: string }, wish: Wish, chosen: ResourceStatus[]): string {
  return commandLine([
    "baton", "app", "sync", application.name, ...namespaceFlag(application.namespace),
    ...(wish.revision === "" ? [] : ["--revision", wish.revision]),
    wish.prune && "--prune", wish.dryRun && "--dry-run", wish.force && "--force", wish.replace && "--replace", wish.serverSide && "--server-side", wish.outOfSyncOnly && "--apply-out-of-sync-only",
    ...chosen.flatMap(({ group, kind, namespace, name }) => ["--resource", `${group ?? ""}:${kind}:${namespace === undefined || namespace === "" ? "" : `${namespace}/`}${name}`]),
  ]);
}

const switches: { field: Exclude<keyof Wish, "revision">; label: string; explains: string }[] = [
  { field: "prune", label: "Prune", explains: "Delete what is no longer in git" },
  { field: "dryRun", label: "Dry run", explains: "Let the cluster check everything, and change nothing" },
  { field: "outOfSyncOnly", label: "Only what differs", explains: "Leave out what is as git says" },
  { field: "serverSide", label: "Server-side apply", explains: "Let the cluster merge" },
  { field: "replace", label: "Replace", explains: "Replace objects instead of merging into them" },
  { field: "force", label: "Force", explains: "Delete and create anew what cannot be changed" },
];

/** Asks what to sync, and how. */
export function SyncDialog({ application, onClose }: { application: Application; onClose: () => void }) {
  const { name, namespace } = application.metadata;
  const resources = (application.status?.resources ?? []).filter((resource) => resource.hook !== true);
  const [wish, setWish] = useState(nothing);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const chosen = resources.filter((resource) => picked.has(resourceKey(resource)));
  const goes = resources.filter((resource) => resource.requiresPruning === true);
  const send = () => {
    setBusy(true);
    calls.sync(namespace, name, requestFor(wish, chosen)).then(onClose, (cause: unknown) => {
      setError(asApiError(cause).message);
      setBusy(false);
    });
  };
  return (
    <Dialog title={`Sync ${name}`} command={commandFor({ name, namespace }, wish, chosen)} confirm={wish.dryRun ? "Try it" : "Sync"} grave={wish.force || wish.replace} busy={busy} error={error} onConfirm={send} onClose={onClose}>
      <label className="field">
        <span>Revision</span>
        <input value={wish.revision} placeholder={application.spec.source?.targetRevision ?? application.spec.sources?.[0]?.targetRevision ?? "HEAD"} maxLength={200} spellCheck={false} onChange={(event) => setWish({ ...wish, revision: event.target.value.trim() })} />
      </label>
      <fieldset className="switches">
        <legend>How</legend>
        {switches.map(({ field, label, explains }) => (
          <label key={field} className="check">
            <input type="checkbox" checked={wish[field]} onChange={(event) => setWish({ ...wish, [field]: event.target.checked })} />
            <span>
              <b>{label}</b> <span className="quiet">{explains}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {goes.length > 0 && (
        <p className={wish.prune ? "notice tone-bad" : "notice tone-person"}>
          {goes.length} {goes.length === 1 ? "resource is" : "resources are"} no longer in git{wish.prune ? " and will be deleted" : "; without Prune they stay"}: {goes.slice(0, 5).map((each) => `${each.kind}/${each.name}`).join(", ")}
          {goes.length > 5 && ` and ${goes.length - 5} more`}
        </p>
      )}
      <details className="plan">
        <summary>{chosen.length === 0 ? `All ${resources.length} resources` : `Only ${chosen.length} of ${resources.length}, without hooks`}</summary>
        <ul className="pick-list">
          {resources.slice(0, 300).map((resource) => {
            const key = resourceKey(resource);
            return (
              <li key={key}>
                <label className="check">
                  <input
                    type="checkbox"
                    checked={picked.has(key)}
                    onChange={() => {
                      const next = new Set(picked);
                      if (!next.delete(key)) next.add(key);
                      setPicked(next);
                    }}
                  />
                  <span>
                    <span className="quiet">{resource.kind}</span> {resource.name} {resource.status === "OutOfSync" && <span className="tone-person">out of sync</span>}
                  </span>
                </label>
              </li>
            );
          })}
        </ul>
      </details>
    </Dialog>
  );
}
