import { useState, type FormEvent, type ReactNode } from "react";
import * as calls from "../api/calls";
import { asApiError, useLoaded, useSource, type Loaded } from "../live/source";
import { CommandLine } from "../parts/CommandLine";
import { Glyph } from "../parts/Glyph";
import { commandLine } from "../parts/format";
import { session } from "../shell/session";
import { chooseTheme, theme, type Theme } from "../shell/theme";
import "./settings.css";

/** What this server is, what it knows, and how these pages look. */
export default function SettingsPage() {
  return (
    <>
      <header className="page-head">
        <h1 tabIndex={-1}>Settings</h1>
      </header>
      <div className="panels">
        <Account />
        <Appearance />
        <MayI />
        <Server />
        <Clusters />
        <Repositories />
        <Projects />
      </div>
    </>
  );
}

function Account() {
  const who = useSource(session);
  if (who.state !== "in") return null;
  const groups = who.user.groups ?? [];
  return (
    <section className="panel">
      <h2>You</h2>
      <dl className="facts">
        <dt>Name</dt>
        <dd>{who.user.username}</dd>
        <dt>Signed in by</dt>
        <dd>{who.user.iss === "argocd" || who.user.iss === undefined ? "a local account" : who.user.iss}</dd>
        <dt>Groups</dt>
        <dd>{groups.length === 0 ? "none" : groups.join(", ")}</dd>
      </dl>
    </section>
  );
}

const themes: [Theme, string][] = [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]];

function Appearance() {
  const chosen = useSource(theme);
  return (
    <section className="panel">
      <h2>Appearance</h2>
      <fieldset className="choices">
        <legend className="hidden-label">Colours</legend>
        {themes.map(([value, label]) => (
          <label key={value} className="check">
            <input type="radio" name="theme" checked={chosen === value} onChange={() => chooseTheme(value)} />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
    </section>
  );
}

/** Asks the server what a policy comes to. */
function MayI() {
  const [resource, setResource] = useState("applications");
  const [action, setAction] = useState("sync");
  const [object, setObject] = useState("default/*");
  const [answer, setAnswer] = useState<string | undefined>(undefined);
  const ask = (event: FormEvent) => {
    event.preventDefault();
    calls.mayI(resource, action, object).then(
      (may) => setAnswer(may ? "Yes, you may." : "No. A line in argocd-rbac-cm or in a role of the project would allow it."),
      (cause: unknown) => setAnswer(asApiError(cause).message),
    );
  };
  return (
    <section className="panel">
      <h2>May I?</h2>
      <form className="may-i" onSubmit={ask}>
        <label className="field">
          <span>Resource</span>
          <select value={resource} onChange={(event) => setResource(event.target.value)}>
            {["applications", "applicationsets", "projects", "clusters", "repositories", "accounts", "logs"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label className="field">
          <span>Action</span>
          <input value={action} required spellCheck={false} onChange={(event) => setAction(event.target.value)} />
        </label>
        <label className="field">
          <span>Object</span>
          <input value={object} required spellCheck={false} onChange={(event) => setObject(event.target.value)} />
        </label>
        <button type="submit" className="button">
          Ask
        </button>
      </form>
      {answer !== undefined && <p role="status">{answer}</p>}
      <CommandLine command={commandLine(["baton", "account", "can-i", action, resource, object])} />
    </section>
  );
}

function Server() {
  const loaded = useLoaded("version", calls.serverVersion);
  return (
    <Listing title="Server" loaded={loaded} what="the version">
      {(version) => (
        <dl className="facts">
          {Object.entries(version)
            .filter(([, value]) => (typeof value === "string" && value !== "") || typeof value === "number")
            .map(([key, value]) => (
              <div key={key} className="facts-row">
                <dt>{key}</dt>
                <dd className="mono">{String(value)}</dd>
              </div>
            ))}
        </dl>
      )}
    </Listing>
  );
}

function Clusters() {
  const loaded = useLoaded("clusters", calls.clusters);
  return (
    <Listing title="Clusters" loaded={loaded} what="clusters">
      {(clusters) => (
        <ul className="listing">
          {clusters.map((cluster) => (
            <li key={cluster.server}>
              <State status={cluster.connectionState?.status} />
              <b>{cluster.name ?? cluster.server}</b>
              <span className="quiet">{cluster.serverVersion}</span>
              <span className="quiet">{cluster.info?.applicationsCount ?? 0} Applications</span>
            </li>
          ))}
        </ul>
      )}
    </Listing>
  );
}

function Repositories() {
  const loaded = useLoaded("repositories", calls.repositories);
  return (
    <Listing title="Repositories" loaded={loaded} what="repositories">
      {(repositories) => (
        <ul className="listing">
          {repositories.map((repository) => (
            <li key={repository.repo}>
              <State status={repository.connectionState?.status} />
              <b>{repository.repo}</b>
              <span className="quiet">{repository.type}</span>
            </li>
          ))}
        </ul>
      )}
    </Listing>
  );
}

function Projects() {
  const loaded = useLoaded("projects", calls.projects);
  return (
    <Listing title="Projects" loaded={loaded} what="projects">
      {(projects) => (
        <ul className="listing">
          {projects.map((project) => (
            <li key={project.metadata.name}>
              <b>{project.metadata.name}</b>
              <span className="quiet">{project.spec?.description}</span>
            </li>
          ))}
        </ul>
      )}
    </Listing>
  );
}

function State({ status }: { status: string | undefined }) {
  const good = status === "Successful";
  return (
    <span className={good ? "tone-good" : status === "Failed" ? "tone-bad" : "tone-calm"}>
      <Glyph name={good ? "done" : status === "Failed" ? "failed" : "unknown"} label={status ?? "Unknown"} />
    </span>
  );
}

/** A panel whose content may be refused without hurting the others. */
function Listing<T>({ title, loaded, what, children }: { title: string; loaded: Loaded<T>; what: string; children: (value: T) => ReactNode }) {
  const { value, error } = loaded;
  const empty = Array.isArray(value) && value.length === 0;
  return (
    <section className="panel">
      <h2>
        {title} {Array.isArray(value) && <span>{value.length}</span>}
      </h2>
      {value === undefined && error === undefined && <p className="quiet">Looking …</p>}
      {error !== undefined && (
        <p className="denied">
          <Glyph name={error.status === 403 ? "lock" : "failed"} />
          {error.status === 403 ? `Your account may not see ${what}.` : error.message}
        </p>
      )}
      {empty && <p className="quiet">None that you may see.</p>}
      {value !== undefined && !empty && children(value)}
    </section>
  );
}
