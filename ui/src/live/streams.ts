// The streams of the pages: rollouts of the fleet, one rollout, approvals, Applications.

import { useEffect, useState } from "react";
import * as calls from "../api/calls";
import { withQuery, type ApiError } from "../api/request";
import type { Application, Approval, FleetEvent, Rollout, RolloutEvent, RolloutSummary } from "../api/shapes";
import { keyOf, mergeFleet, mergeRollout } from "./merge";
import { asApiError, Source, tellLink, useSource } from "./source";
import { follow } from "./stream";

export interface Followed<T> {
  value: T | undefined;
  error: ApiError | undefined;
  again: () => void;
}

interface Plot<T> {
  name: string;
  path: string;
  load: () => Promise<T>;
  /** The value after an event; `undefined` asks for the whole anew. */
  merge: (known: T | undefined, event: unknown) => T | undefined;
}

/** Loads, then follows; `key` says what. Events of one frame are drawn together. */
function useFollowed<T>(key: string, plot: () => Plot<T>): Followed<T> {
  const [state, setState] = useState<{ key: string; value: T | undefined; error: ApiError | undefined }>({ key, value: undefined, error: undefined });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const { name, path, load, merge } = plot();
    let value: T | undefined;
    let wanted = true;
    let frame = 0;
    const show = () => {
      frame = 0;
      if (wanted) setState({ key, value, error: undefined });
    };
    // A hidden page gets no frames; it is drawn when it is looked at again.
    const later = () => {
      if (frame === 0) frame = requestAnimationFrame(show);
    };
    let heard = 0;
    // An answer that was overtaken by events may be older than they are: then it is asked for again, a few times.
    const ask = async () => {
      for (let tries = 0; tries < 3; tries += 1) {
        const before = heard;
        const answer = await load();
        if (heard !== before && value !== undefined && tries < 2) continue;
        value = answer;
        later();
        return;
      }
    };
    const fail = (cause: unknown) => {
      if (wanted) setState((before) => ({ key, value: before.key === key ? before.value : undefined, error: asApiError(cause) }));
    };
    let close = () => undefined as void;
    let connections = 0;
    const begin = () => {
      if (!wanted) return;
      close = follow(path, {
        opened: () => {
          connections += 1;
          // What was deleted while the line was down is told of by nobody.
          if (connections > 1) ask().catch(fail);
        },
        result: (event) => {
          heard += 1;
          const next = merge(value, event);
          if (next === undefined) ask().catch(fail);
          else {
            value = next;
            later();
          }
        },
        link: (link, problem) => tellLink(name, link, problem),
        poll: ask,
      });
    };
    ask().then(begin, (cause: unknown) => {
      fail(cause);
      const { status } = asApiError(cause);
      // What is refused stays refused; what did not answer is followed until it does.
      if (status !== 401 && status !== 403 && status !== 404) begin();
    });
    return () => {
      wanted = false;
      cancelAnimationFrame(frame);
      close();
      tellLink(name, undefined);
    };
  }, [key, attempt]);
  const current = state.key === key ? state : { value: undefined, error: undefined };
  return { value: current.value, error: current.error, again: () => setAttempt((count) => count + 1) };
}

export type Fleet = ReadonlyMap<string, RolloutSummary>;

export function useFleet(): Followed<Fleet> {
  return useFollowed<Fleet>("fleet", () => ({
    name: "fleet",
    // Without the word the targets of every set would be sent too.
    path: withQuery("/api/v1/stream/rollouts", { summary: true }),
    load: async () => new Map((await calls.rollouts()).map((summary) => [keyOf(summary), summary])),
    merge: (known, event) => (known === undefined ? undefined : mergeFleet(known, event as FleetEvent)),
  }));
}

export function useRollout(namespace: string, name: string): Followed<Rollout> {
  const mine = (event: RolloutEvent) => event.rollout.name === name && event.rollout.namespace === namespace;
  return useFollowed<Rollout>(`rollout ${namespace}/${name}`, () => ({
    name: "rollout",
    path: withQuery("/api/v1/stream/rollouts", { name, appsetNamespace: namespace }),
    load: async () => {
      const whole = mergeRollout(undefined, { type: "ADDED", rollout: await calls.rollout(namespace, name) });
      if (whole === undefined) throw new Error("an answer without a rollout");
      return whole;
    },
    merge: (known, event) => (mine(event as RolloutEvent) ? mergeRollout(known, event as RolloutEvent) : known),
  }));
}

export type Applications = ReadonlyMap<string, Application>;

export function useApplications(): Followed<Applications> {
  return useFollowed<Applications>("applications", () => ({
    name: "applications",
    path: withQuery("/api/v1/stream/applications", {
      fields: ["result.type", ...calls.listFields.map((field) => `result.application.${field}`)].join(","),
    }),
    load: async () => new Map((await calls.applications()).map((app) => [keyOf(app.metadata), app])),
    merge: (known, event) => {
      if (known === undefined) return undefined;
      const { type, application } = event as { type: string; application: Application };
      const next = new Map(known);
      if (type === "DELETED") next.delete(keyOf(application.metadata));
      else next.set(keyOf(application.metadata), application);
      return next;
    },
  }));
}

export function useApplication(namespace: string, name: string): Followed<Application> {
  return useFollowed<Application>(`application ${namespace}/${name}`, () => ({
    name: "application",
    path: withQuery("/api/v1/stream/applications", { name, appNamespace: namespace }),
    load: () => calls.application(namespace, name),
    merge: (known, event) => {
      const { type, application } = event as { type: string; application: Application };
      if (application.metadata.name !== name || application.metadata.namespace !== namespace) return known;
      return type === "DELETED" ? undefined : application;
    },
  }));
}

// === approvals: one stream for the whole page, since the count stands in the top bar everywhere ===

interface Inbox {
  value: Approval[] | undefined;
  error: ApiError | undefined;
}

const inbox = new Source<Inbox>({ value: undefined, error: undefined });

/** Asks at once, as after a decision of one's own. */
export async function askForApprovals(): Promise<void> {
  inbox.write({ value: await calls.approvals(), error: undefined });
}

const askOrTell = () => askForApprovals().catch((cause: unknown) => inbox.write({ ...inbox.read(), error: asApiError(cause) }));

/** Begins to follow the approvals; the answer ends it. */
export function followApprovals(): () => void {
  void askOrTell();
  const close = follow("/api/v1/stream/approvals", {
    result: (result) => inbox.write({ value: (result as { items?: Approval[] | null }).items ?? [], error: undefined }),
    link: (link, problem) => tellLink("approvals", link, problem),
    poll: askForApprovals,
  });
  return () => {
    close();
    tellLink("approvals", undefined);
    inbox.write({ value: undefined, error: undefined });
  };
}

export function useApprovals(): Followed<Approval[]> {
  const { value, error } = useSource(inbox);
  return { value, error, again: () => void askOrTell() };
}
