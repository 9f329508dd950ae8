import { useState } from "react";
import * as calls from "../api/calls";
import { useLoaded } from "../live/source";
import { FilterChips } from "../parts/FilterChips";
import { fullTime } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { useQuery } from "../parts/route";
import { SearchField } from "../parts/SearchField";
import { Loading, Nothing, Refused } from "../parts/Standing";
import { Ago } from "../parts/time";
import "./settings.css";

const refusedOutcomes = /denied|refused|failed|error/i;

/** Who did what, newest first. */
export default function AuditPage() {
  const [limit, setLimit] = useState(200);
  const loaded = useLoaded(`audit ${limit}`, () => calls.audit(limit));
  const query = useQuery();
  if (loaded.value === undefined) return loaded.error === undefined ? <Loading what="the audit log" /> : <Refused error={loaded.error} what="the audit log" again={loaded.again} />;
  const entries = loaded.value;
  if (entries.length === 0) {
    return (
      <Nothing title="Nobody has done anything yet">
        <p>Every change that is made through the server is listed here, with who made it and why.</p>
      </Nothing>
    );
  }
  const text = (query.get("q") ?? "").toLowerCase();
  const show = query.get("show") ?? "";
  const shown = entries.filter((entry) => (show === "" || refusedOutcomes.test(entry.outcome) === (show === "refused")) && (text === "" || `${entry.actor} ${entry.verb} ${entry.object} ${entry.reason ?? ""}`.toLowerCase().includes(text)));
  const refused = entries.filter((entry) => refusedOutcomes.test(entry.outcome)).length;
  return (
    <>
      <header className="page-head">
        <h1 tabIndex={-1}>Audit</h1>
        <p className="quiet">Who did what, newest first. Kubernetes keeps its events for an hour unless told otherwise; the log of the server keeps them all.</p>
      </header>
      <div className="toolbar">
        <SearchField label="Find a person, verb or object" />
        <FilterChips
          field="show"
          label="Show only"
          choices={[
            { value: "done", label: "Done", count: entries.length - refused, tone: "good", glyph: "done" },
            { value: "refused", label: "Refused", count: refused, tone: "bad", glyph: "failed" },
          ]}
        />
      </div>
      {shown.length === 0 && <Nothing title="No entry is like that" />}
      <ul className="audit">
        {shown.map((entry, index) => (
          <li key={`${entry.at} ${entry.actor} ${entry.verb} ${index}`} className={refusedOutcomes.test(entry.outcome) ? "tone-bad" : "tone-good"}>
            <Glyph name={refusedOutcomes.test(entry.outcome) ? "failed" : "done"} label={entry.outcome} />
            <b>{entry.actor}</b>
            <span className="audit-verb">{entry.verb}</span>
            <span className="audit-object">{entry.object}</span>
            <span className="quiet audit-reason">{entry.reason}</span>
            <span className="quiet" title={fullTime(entry.at)}>
              <Ago time={entry.at} />
            </span>
          </li>
        ))}
      </ul>
      {entries.length >= limit && (
        <button type="button" className="button" onClick={() => setLimit(limit * 2)}>
          Show older ones
        </button>
      )}
    </>
  );
}
