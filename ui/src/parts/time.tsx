// One clock for the whole page, that ticks once a second while somebody looks.

import { useSyncExternalStore } from "react";
import { duration, elapsed, fullTime, relative, timeOf } from "./format";

let now = Date.now();
const readers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const each of [...readers]) each();
  }, 1000);
  return () => {
    readers.delete(reader);
    if (readers.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** How long ago. */
export function Ago({ time }: { time: string | undefined | null }) {
  const text = relative(time, useNow());
  return text === "" ? null : (
    <time dateTime={time ?? undefined} title={fullTime(time)}>
      {text}
    </time>
  );
}

/** For how long now, or how long it took. */
export function Lasted({ from, to }: { from: string | undefined; to?: string | undefined }) {
  const text = elapsed(from, to, useNow());
  return text === "" ? null : (
    <time dateTime={from} title={fullTime(from)}>
      {text}
    </time>
  );
}

/** How long until then. */
export function Until({ time }: { time: string | undefined }) {
  const at = timeOf(time);
  const left = (at ?? 0) - useNow();
  if (at === undefined) return null;
  return (
    <time dateTime={time} title={fullTime(time)}>
      {left > 0 ? duration(left) : "any moment"}
    </time>
  );
}
