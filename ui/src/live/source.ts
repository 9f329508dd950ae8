// A value that several parts of the page look at, and the hooks that read it.

import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import { ApiError } from "../api/request";
import type { Link } from "./stream";

export class Source<T> {
  private readonly readers = new Set<() => void>();

  constructor(private value: T) {}

  read = (): T => this.value;

  write(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const reader of [...this.readers]) reader();
  }

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };
}

export function useSource<T>(source: Source<T>): T {
  return useSyncExternalStore(source.subscribe, source.read);
}

/** How the streams of the page fare; the worst of them is shown. */
export const links = new Source<ReadonlyMap<string, { link: Link; problem?: string }>>(new Map());

export function tellLink(stream: string, link: Link | undefined, problem?: string): void {
  const next = new Map(links.read());
  if (link === undefined) next.delete(stream);
  else next.set(stream, problem === undefined || problem === "" ? { link } : { link, problem });
  links.write(next);
}

/** What was asked for: not there yet, there, or refused. What was there stays while it is asked for again. */
export interface Loaded<T> {
  value: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  again: () => void;
}

/** The last word of a key is a version: what was there stays while a newer one of the same thing is asked for. */
function sameThing(before: string, now: string): boolean {
  const thing = (key: string) => key.slice(0, key.lastIndexOf(" "));
  return before === now || (thing(before) === thing(now) && thing(now) !== "");
}

/** Asks once, and anew whenever `key` changes or `again` is called. */
export function useLoaded<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | undefined; error: ApiError | undefined; loading: boolean }>({
    key, value: undefined, error: undefined, loading: true,
  });
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let wanted = true;
    setState((before) => ({ key, value: sameThing(before.key, key) ? before.value : undefined, error: undefined, loading: true }));
    load().then(
      (value) => wanted && setState({ key, value, error: undefined, loading: false }),
      (cause: unknown) => wanted && setState((before) => ({ ...before, key, error: asApiError(cause), loading: false })),
    );
    return () => {
      wanted = false;
    };
    // `load` is made anew on every drawing; `key` says what it asks for.
  }, [key, asked]);
  const again = useCallback(() => setAsked((count) => count + 1), []);
  return { value: state.value, error: state.error, loading: state.loading, again };
}

export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  return new ApiError(0, cause instanceof Error ? cause.message : "something unexpected happened");
}
