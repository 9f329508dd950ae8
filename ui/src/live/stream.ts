// One stream that stays: reads, notices silence, connects again with growing pauses, and has somebody poll while it cannot.

import { ApiError, refusal } from "../api/request";
import { FrameReader, resultOf } from "./frames";

/** How the page stands to the server: what the sign in the top bar says. */
export type Link = "connecting" | "live" | "stale" | "polling" | "refused";

/** The server sends a sign of life every 15 s; two that are missing are a broken line. */
export const silenceLimit = 32_000;
const firstPause = 500;
const longestPause = 15_000;
const failuresBeforePolling = 2;
const pollInterval = 8_000;

export interface Listener {
  /** Before the first event of a new connection: what follows is the whole state again. */
  opened?: () => void;
  result: (result: unknown) => void;
  link: (link: Link, problem?: string) => void;
  /** Asks once for what the stream would tell. */
  poll: () => Promise<void>;
}

/** How long to wait before the next attempt; spread out, so that a fleet of screens does not come back at once. */
export function pauseAfter(failures: number, random: number): number {
  const longest = Math.min(longestPause, firstPause * 2 ** Math.max(0, failures - 1));
  return Math.round(longest * (0.5 + random / 2));
}

/** Opens the stream; the answer closes it. */
export function follow(path: string, listener: Listener): () => void {
  const ended = new AbortController();
  void run(path, steady(listener), ended.signal);
  return () => ended.abort();
}

/** What is old stays so until something new is heard: that one tries again is no news. */
function steady(listener: Listener): Listener {
  let stale = false;
  return {
    ...listener,
    link: (link, problem) => {
      if (stale && link === "connecting") return;
      stale = link === "stale";
      listener.link(link, problem);
    },
  };
}

async function run(path: string, listener: Listener, ended: AbortSignal): Promise<void> {
  let failures = 0;
  while (!ended.aborted) {
    if (failures === 0) listener.link("connecting");
    let problem = "";
    try {
      const heard = await readOnce(path, listener, ended);
      // A line that worked and was cut is no reason to wait long.
      failures = heard ? 1 : failures + 1;
    } catch (cause) {
      if (ended.aborted) return;
      if (cause instanceof ApiError && (cause.status === 401 || cause.status === 403)) {
        listener.link("refused", cause.message);
        return;
      }
      problem = cause instanceof Error ? cause.message : "";
      failures += 1;
    }
    if (ended.aborted) return;
    const pause = pauseAfter(failures, Math.random());
    if (failures > failuresBeforePolling) await pollFor(Math.max(pause, pollInterval), listener, ended);
    else {
      listener.link("connecting", problem);
      await rest(pause, ended);
    }
  }
}

async function readOnce(path: string, listener: Listener, ended: AbortSignal): Promise<boolean> {
  const cut = new AbortController();
  const forward = () => cut.abort();
  ended.addEventListener("abort", forward);
  let heard = false;
  let watch: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => {
      listener.link("stale");
      cut.abort();
    }, silenceLimit);
  };
  try {
    alive();
    const response = await fetch(path, { headers: { Accept: "text/event-stream" }, credentials: "same-origin", signal: cut.signal });
    if (!response.ok || response.body === null) throw await refusal(response, path);
    listener.opened?.();
    listener.link("live");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const frames = new FrameReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return heard;
      alive();
      heard = true;
      for (const frame of frames.push(value)) {
        if (frame.kind !== "data") continue;
        const result = resultOf(frame.text);
        if (result !== undefined) listener.result(result);
      }
    }
  } finally {
    clearTimeout(watch);
    ended.removeEventListener("abort", forward);
    cut.abort();
  }
}

async function pollFor(milliseconds: number, listener: Listener, ended: AbortSignal): Promise<void> {
  try {
    await listener.poll();
    if (!ended.aborted) listener.link("polling");
  } catch (cause) {
    if (!ended.aborted) listener.link("stale", cause instanceof Error ? cause.message : undefined);
  }
  await rest(milliseconds, ended);
}

function rest(milliseconds: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    function finish() {
      clearTimeout(timer);
      ended.removeEventListener("abort", finish);
      resolve();
    }
    ended.addEventListener("abort", finish);
  });
}
