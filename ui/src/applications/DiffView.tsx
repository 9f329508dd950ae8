import { useState } from "react";
import * as calls from "../api/calls";
import type { ManagedResource, ResourceRef } from "../api/shapes";
import { useLoaded } from "../live/source";
import { Loading, Nothing, Refused } from "../parts/Standing";
import { contextOf, differs, diffOf, linesOf } from "./difference";

const marks = { same: " ", added: "+", removed: "−", gap: "⋯" } as const;

/** How the cluster differs from git: of everything, or of one resource. It is asked for again when `at`, the time of the last comparison, moves on. */
export function DiffView({ namespace, name, only, at }: { namespace: string; name: string; only?: ResourceRef; at?: string | undefined }) {
  const [all, setAll] = useState(only !== undefined);
  const loaded = useLoaded(`diff ${namespace}/${name} ${only === undefined ? "" : `${only.kind}/${only.name}`} ${at ?? ""}`, () => calls.managedResources(namespace, name, only));
  if (loaded.value === undefined) return loaded.error === undefined ? <Loading what="the difference" /> : <Refused error={loaded.error} what="the difference" again={loaded.again} />;
  const compared = loaded.value.filter((resource) => resource.hook !== true).map((resource) => ({ resource, lines: diffOf(linesOf(resource.normalizedLiveState ?? resource.liveState), linesOf(resource.predictedLiveState ?? resource.targetState)) }));
  const shown = only === undefined ? compared.filter(({ lines }) => differs(lines)) : compared.filter(({ resource }) => resource.kind === only.kind && resource.name === only.name);
  if (shown.length === 0) return <Nothing title={only === undefined ? "The cluster is as git says" : "Nothing to compare"} />;
  return (
    <div className="diffs">
      {only === undefined && (
        <label className="check">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
          <span>Show what is alike too</span>
        </label>
      )}
      {shown.slice(0, 50).map(({ resource, lines }) => (
        <section key={`${resource.group ?? ""}/${resource.kind}/${resource.namespace ?? ""}/${resource.name}`} className="diff" aria-label={`${resource.kind} ${resource.name}`}>
          <h3>
            <span className="quiet">{resource.kind}</span> {resource.namespace !== undefined && resource.namespace !== "" ? `${resource.namespace}/` : ""}
            {resource.name} <span className="quiet">{fate(resource)}</span>
          </h3>
          <pre tabIndex={0}>
            {(all && differs(lines) && only === undefined ? lines : differs(lines) ? contextOf(lines) : lines).map((line, index) => (
              <span key={index} className={`line line-${line.kind}`}>
                <i>{marks[line.kind]}</i>
                {line.text}
                {"\n"}
              </span>
            ))}
          </pre>
        </section>
      ))}
    </div>
  );
}

function fate(resource: ManagedResource): string {
  const there = linesOf(resource.liveState).length > 0;
  const wanted = linesOf(resource.targetState).length > 0;
  if (there && !wanted) return "would be deleted";
  return wanted && !there ? "would be created" : "";
}
