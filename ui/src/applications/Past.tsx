import { useState } from "react";
import * as calls from "../api/calls";
import type { Application } from "../api/shapes";
import { asApiError, useLoaded } from "../live/source";
import { Dialog } from "../parts/Dialog";
import { commandLine, shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Loading, Nothing, Refused } from "../parts/Standing";
import { Ago } from "../parts/time";
import { namespaceFlag } from "../rollout/effect";

/** What Kubernetes noted about it. */
export function Events({ namespace, name }: { namespace: string; name: string }) {
  const loaded = useLoaded(`events ${namespace}/${name}`, () => calls.applicationEvents(namespace, name));
  if (loaded.value === undefined) return loaded.error === undefined ? <Loading what="the events" /> : <Refused error={loaded.error} what="the events" again={loaded.again} />;
  if (loaded.value.length === 0) return <Nothing title="No events" />;
  const when = (event: (typeof loaded.value)[number]) => event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? "";
  const sorted = [...loaded.value].sort((left, right) => when(right).localeCompare(when(left)));
  return (
    <ul className="past">
      {sorted.slice(0, 200).map((event, index) => (
        <li key={event.metadata?.uid ?? index} className={event.type === "Warning" ? "tone-bad" : "tone-calm"}>
          <Glyph name={event.type === "Warning" ? "person" : "idle"} label={event.type ?? "Normal"} />
          <b>{event.reason}</b>
          <span className="past-text">{event.message}</span>
          {(event.count ?? 0) > 1 && <span className="quiet">× {event.count}</span>}
          <span className="quiet">
            <Ago time={when(event)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** What was deployed, and the way back. */
export function History({ application, maySync, again }: { application: Application; maySync: boolean | undefined; again: () => void }) {
  const [to, setTo] = useState<{ id: number; revision: string } | undefined>(undefined);
  const [error, setError] = useState<string | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const { name, namespace } = application.metadata;
  const history = [...(application.status?.history ?? [])].reverse();
  const { automated } = application.spec.syncPolicy ?? {};
  const held = automated !== undefined && automated.enabled !== false;
  if (history.length === 0) return <Nothing title="Nothing was deployed yet" />;
  const send = () => {
    if (to === undefined) return;
    setBusy(true);
    calls.rollbackTo(namespace, name, to.id).then(
      () => {
        setTo(undefined);
        again();
      },
      (cause: unknown) => setError(asApiError(cause).message),
    ).finally(() => setBusy(false));
  };
  return (
    <>
      {held && <p className="quiet">Automatic sync is on: going back here would be undone at once. Switch it off first, or go back in git.</p>}
      <ol className="past">
        {history.map((entry, index) => (
          <li key={entry.id} className={index === 0 ? "tone-good" : "tone-calm"}>
            <Glyph name={index === 0 ? "done" : "idle"} label={index === 0 ? "Now" : "Earlier"} />
            <b>
              <code>{shortRevision(entry.revision)}</code>
            </b>
            <span className="past-text">{entry.initiatedBy?.automated === true ? "automatic" : (entry.initiatedBy?.username ?? "")}</span>
            <span className="quiet">
              <Ago time={entry.deployedAt} />
            </span>
            {index > 0 && maySync === true && !held && (
              <button type="button" className="button button-small" onClick={() => setTo({ id: entry.id, revision: entry.revision ?? "" })}>
                Go back to it
              </button>
            )}
          </li>
        ))}
      </ol>
      {to !== undefined && (
        <Dialog
          title={`Take ${name} back to ${shortRevision(to.revision)}`}
          command={commandLine(["baton", "app", "rollback", name, String(to.id), ...namespaceFlag(namespace)])}
          confirm="Go back"
          grave
          busy={busy}
          error={error}
          onConfirm={send}
          onClose={() => setTo(undefined)}
        >
          <p>The manifests of then are applied. What has come since and is not in them stays.</p>
        </Dialog>
      )}
    </>
  );
}
