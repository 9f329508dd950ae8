import { memo } from "react";
import type { RolloutSummary } from "../api/shapes";
import { keyOf } from "../live/merge";
import { useFleet } from "../live/streams";
import { Anchor } from "../parts/Anchor";
import { Chip } from "../parts/Chip";
import { CommandLine } from "../parts/CommandLine";
import { FilterChips } from "../parts/FilterChips";
import { count, percent, shortRevision } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { rolloutPath, setQuery, useQuery } from "../parts/route";
import { SearchField } from "../parts/SearchField";
import { Loading, Nothing, Outdated, Refused } from "../parts/Standing";
import { Ago, Lasted } from "../parts/time";
import { healthLook, rolloutLook } from "../parts/tone";
import { Track } from "../parts/Track";
import { asked, concernOf, headline, inOrder, type Concern } from "./order";
import "./fleet.css";

const sections: { concern: Concern; title: string }[] = [
  { concern: "attention", title: "Needs a look" },
  { concern: "moving", title: "Under way" },
  { concern: "settled", title: "At rest" },
];

/** All sets, what needs a person first. */
export function FleetPage() {
  const { value, error, again } = useFleet();
  const query = useQuery();
  if (value === undefined) return error === undefined ? <Loading what="the fleet" /> : <Refused error={error} what="the fleet" again={again} />;
  const all = inOrder(value.values());
  if (all.length === 0) {
    return (
      <Nothing title="No ApplicationSets yet">
        <p>A set describes the Applications of many clusters at once, and in which order they change. Make the first one:</p>
        <CommandLine command="baton appset create -f web.yaml" />
      </Nothing>
    );
  }
  const filter = { text: query.get("q") ?? "", concern: query.get("show") ?? "", project: query.get("project") ?? "" };
  const shown = all.filter((set) => asked(set, filter));
  return (
    <>
      <Outdated error={error} again={again} />
      <header className="page-head">
        <h1 tabIndex={-1}>{headline(all)}</h1>
        <p className="quiet">
          {count(all.length, "set")} with {count(all.reduce((sum, set) => sum + set.counts.total, 0), "Application")}
        </p>
      </header>
      <div className="toolbar">
        <SearchField label="Find a set, project or revision" />
        <FilterChips
          field="show"
          label="Show only"
          choices={sections.map(({ concern, title }) => ({
            value: concern,
            label: title,
            count: all.filter((set) => concernOf(set) === concern).length,
            tone: concern === "attention" ? "person" : concern === "moving" ? "active" : "good",
            glyph: concern === "attention" ? "person" : concern === "moving" ? "running" : "done",
          }))}
        />
        <Projects sets={all} chosen={filter.project} />
      </div>
      {shown.length === 0 && (
        <Nothing title="No set is like that">
          <button type="button" className="button" onClick={() => ["q", "show", "project"].forEach((field) => setQuery(field, undefined))}>
            Show all
          </button>
        </Nothing>
      )}
      {sections.map(({ concern, title }) => {
        const members = shown.filter((set) => concernOf(set) === concern);
        if (members.length === 0) return null;
        return (
          <section key={concern} className="fleet-section" aria-label={title}>
            <h2>
              {title} <span>{members.length}</span>
            </h2>
            <ul className={concern === "settled" ? "fleet-rows" : "fleet-cards"}>
              {members.map((set) => (
                <li key={keyOf(set)}>{concern === "settled" ? <Row set={set} /> : <Card set={set} />}</li>
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}

function Projects({ sets, chosen }: { sets: RolloutSummary[]; chosen: string }) {
  const names = [...new Set(sets.map((set) => set.project))].sort();
  if (names.length < 2) return null;
  return (
    <label className="pick">
      <span className="hidden-label">Project</span>
      <select value={chosen} onChange={(event) => setQuery("project", event.target.value)}>
        <option value="">All projects</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

const Card = memo(function Card({ set }: { set: RolloutSummary }) {
  const look = rolloutLook(set.state);
  return (
    <Anchor href={rolloutPath(set.namespace, set.name)} className={`set tone-${set.approvals > 0 ? "person" : look.tone}`}>
      <span className="set-head">
        <strong>{set.name}</strong>
        <Chip look={look} />
      </span>
      <span className="set-reason">{set.reason}</span>
      <Track counts={set.counts} label={`Progress of ${set.name}`} />
      <span className="set-counts">
        <b>{percent(set.counts.done, set.counts.total)} %</b>
        <span>
          {set.counts.done.toLocaleString("en-GB")} of {set.counts.total.toLocaleString("en-GB")}
        </span>
        {set.counts.updating > 0 && <span className="tone-active">{set.counts.updating} under way</span>}
        {set.counts.failed > 0 && <span className="tone-bad">{set.counts.failed} failed</span>}
        {set.approvals > 0 && (
          <span className="set-approvals">
            <Glyph name="person" /> {count(set.approvals, "approval")}
          </span>
        )}
      </span>
      <span className="set-foot">
        <span>{set.project}</span>
        {set.revision !== undefined && <code>{shortRevision(set.revision)}</code>}
        {set.startedAt !== undefined && (
          <span>
            <Lasted from={set.startedAt} to={set.finishedAt} />
          </span>
        )}
      </span>
    </Anchor>
  );
});

const Row = memo(function Row({ set }: { set: RolloutSummary }) {
  const health = healthLook(set.health);
  return (
    <Anchor href={rolloutPath(set.namespace, set.name)} className="set-row" title={set.reason}>
      <span className={`tone-${health.tone}`}>
        <Glyph name={health.glyph} label={health.word} />
      </span>
      <strong>{set.name}</strong>
      <span className="quiet">{set.project}</span>
      <code>{shortRevision(set.revision)}</code>
      <span>{set.counts.total.toLocaleString("en-GB")}</span>
      <span className="quiet">
        <Ago time={set.finishedAt} />
      </span>
    </Anchor>
  );
});
