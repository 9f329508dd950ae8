// Which colour, sign and word a state has. Tones are few: whatever state a thing is in, a person wants to know one of these.

import type { GateState, HealthState, LaneState, RolloutState, TargetState } from "../api/shapes";
import type { GlyphName } from "./Glyph";

export type Tone = "good" | "active" | "calm" | "person" | "bad" | "held" | "leaving";

export interface Look {
  tone: Tone;
  glyph: GlyphName;
  word: string;
}

const look = (tone: Tone, glyph: GlyphName, word: string): Look => ({ tone, glyph, word });

const rollouts: Record<RolloutState, Look> = {
  Idle: look("calm", "idle", "At rest"),
  Progressing: look("active", "running", "Under way"),
  Paused: look("held", "paused", "Paused"),
  Waiting: look("person", "person", "Waiting"),
  Failed: look("bad", "failed", "Failed"),
  Aborted: look("held", "aborted", "Aborted"),
  RollingBack: look("active", "back", "Going back"),
  Complete: look("good", "done", "Complete"),
  Deleting: look("leaving", "leaving", "Being deleted"),
  Invalid: look("bad", "unknown", "Invalid"),
  Superseded: look("calm", "skipped", "Overtaken"),
};

const lanes: Record<LaneState, Look> = {
  Pending: look("calm", "waiting", "Not open"),
  Open: look("active", "running", "Open"),
  Done: look("good", "done", "Done"),
  Failed: look("bad", "failed", "Failed"),
  RollingBack: look("active", "back", "Going back"),
  RolledBack: look("held", "back", "Put back"),
  Skipped: look("calm", "skipped", "Passed over"),
};

const gates: Record<GateState, Look> = {
  Pending: look("calm", "waiting", "Not yet"),
  Running: look("active", "running", "Running"),
  Passed: look("good", "done", "Passed"),
  Failed: look("bad", "failed", "Failed"),
  Skipped: look("calm", "skipped", "Passed over"),
};

const targets: Record<TargetState, Look> = {
  Waiting: look("calm", "waiting", "Waiting"),
  Pending: look("calm", "pending", "Next"),
  Progressing: look("active", "running", "Under way"),
  Healthy: look("good", "done", "Done"),
  Failed: look("bad", "failed", "Failed"),
  Deleting: look("leaving", "leaving", "Leaving"),
};

const healths: Record<HealthState, Look> = {
  Healthy: look("good", "done", "Healthy"),
  Progressing: look("active", "running", "Progressing"),
  Degraded: look("bad", "failed", "Degraded"),
  Suspended: look("held", "paused", "Suspended"),
  Missing: look("person", "unknown", "Missing"),
  Unknown: look("calm", "unknown", "Unknown"),
};

const syncs: Record<string, Look> = {
  Synced: look("good", "done", "Synced"),
  OutOfSync: look("person", "retry", "Out of sync"),
};

const unheardOf = (word: string): Look => look("calm", "unknown", word === "" ? "Unknown" : word);

// A server that is newer than this page may know more states.
export const rolloutLook = (state: string): Look => (rollouts as Record<string, Look>)[state] ?? unheardOf(state);
export const laneLook = (state: string): Look => (lanes as Record<string, Look>)[state] ?? unheardOf(state);
export const gateLook = (state: string): Look => (gates as Record<string, Look>)[state] ?? unheardOf(state);
export const targetLook = (state: string): Look => (targets as Record<string, Look>)[state] ?? unheardOf(state);
export const healthLook = (state: string | undefined): Look => (healths as Record<string, Look>)[state ?? ""] ?? unheardOf(state ?? "");
export const syncLook = (state: string | undefined): Look => syncs[state ?? ""] ?? unheardOf(state ?? "");
