import { memo, useMemo } from "react";
import type { Application } from "../api/shapes";
import { compareNames, keyOf } from "../live/merge";
import { useApplications } from "../live/streams";
import { Anchor } from "../parts/Anchor";
import { CommandLine } from "../parts/CommandLine";
import { FilterChips } from "../parts/FilterChips";
import { count, shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { applicationPath, useQuery } from "../parts/route";
import { SearchField } from "../parts/SearchField";
import { Loading, Nothing, Outdated, Refused } from "../parts/Standing";
import { healthLook, syncLook, type Look } from "../parts/tone";
import { VirtualRows } from "../parts/VirtualRows";
import { askedFor, standingOf, standings } from "./list";
import "./applications.css";

/** All Applications; five thousand of them are a list like any other. */
export default function ApplicationsPage() {
  const { value, error, again } = useApplications();
  const query = useQuery();
  const all = useMemo(() => [...(value?.values() ?? [])].sort((left, right) => compareNames(left.metadata.name, right.metadata.name)), [value]);
  if (value === undefined) return error === undefined ? <Loading what="the Applications" /> : <Refused error={error} what="the Applications" again={again} />;
  if (all.length === 0) {
    return (
      <Nothing title="No Applications yet">
        <p>Sets make them. One by itself is made by</p>
        <CommandLine command="baton app create web --repo https://git.example.com/web.git --path deploy" />
      </Nothing>
    );
  }
  const shown = all.filter((app) => askedFor(app, query.get("q") ?? "", query.get("show") ?? ""));
  return (
    <>
      <Outdated error={error} again={again} />
      <header className="page-head">
        <h1 tabIndex={-1}>{count(all.length, "Application")}</h1>
        <p className="quiet">{shown.length === all.length ? "in all projects you may see" : `${shown.length.toLocaleString("en-GB")} shown`}</p>
      </header>
      <div className="toolbar">
        <SearchField label="Find by name, cluster or label" />
        <FilterChips
          field="show"
          label="Show only"
          choices={standings
            .map(({ value: standing, label, tone, glyph }) => ({ value: standing, label, tone, glyph, count: all.filter((app) => standingOf(app) === standing).length }))
            .filter((choice) => choice.count > 0)}
        />
      </div>
      {shown.length === 0 ? <Nothing title="No Application is like that" /> : <VirtualRows items={shown} height={3} label="Applications" keyOf={(app) => keyOf(app.metadata)} row={(app) => <Row app={app} />} />}
    </>
  );
}

const Row = memo(function Row({ app }: { app: Application }) {
  const { metadata, spec, status } = app;
  return (
    <Anchor href={applicationPath(metadata.namespace, metadata.name)} className="app-row">
      <Sign look={healthLook(status?.health?.status)} />
      <strong title={metadata.name}>{metadata.name}</strong>
      <span className="app-cluster">{spec.destination.name ?? spec.destination.server}</span>
      <span className="app-project quiet">{spec.project}</span>
      <span className="app-sync">
        <Sign look={syncLook(status?.sync?.status)} word />
      </span>
      <code>{shortRevision(status?.sync?.revision)}</code>
      {metadata.deletionTimestamp !== undefined ? <span className="tone-leaving">leaving</span> : status?.operationState?.phase === "Running" ? <span className="tone-active">syncing</span> : <span />}
    </Anchor>
  );
});

function Sign({ look, word = false }: { look: Look; word?: boolean }) {
  return (
    <span className={`sign tone-${look.tone}`}>
      <Glyph name={look.glyph} {...(word ? {} : { label: look.word })} />
      {word && look.word}
    </span>
  );
}
