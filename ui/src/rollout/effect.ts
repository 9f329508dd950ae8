// What a person's word would do, told beforehand from what is on the board.

import type { ActionName, Lane, Rollout, Target } from "../api/shapes";
import { commandLine, count } from "../parts/format";
import type { GlyphName } from "../parts/Glyph";

export interface Wording {
  label: string;
  glyph: GlyphName;
  title: (name: string) => string;
  grave: boolean;
  /** Whether an Application must be named. */
  of: "set" | "application" | "either";
}

export const wordings: Record<ActionName, Wording> = {
  "approve-deletion": { label: "Approve deletion", glyph: "approve", title: (name) => `Approve the deletion that ${name} waits with`, grave: true, of: "set" },
  resume: { label: "Resume", glyph: "play", title: (name) => `Let ${name} go on`, grave: false, of: "set" },
  pause: { label: "Pause", glyph: "paused", title: (name) => `Pause ${name}`, grave: false, of: "set" },
  advance: { label: "Advance", glyph: "advance", title: (name) => `Advance ${name}`, grave: false, of: "set" },
  retry: { label: "Retry", glyph: "retry", title: (name) => `Try again what failed in ${name}`, grave: false, of: "either" },
  skip: { label: "Skip", glyph: "skipped", title: (name) => `Skip an Application of ${name}`, grave: true, of: "application" },
  rollback: { label: "Roll back", glyph: "back", title: (name) => `Put back what this phase of ${name} has changed`, grave: true, of: "set" },
  "rollback-all": { label: "Roll back all", glyph: "back", title: (name) => `Put back everything this run of ${name} has changed`, grave: true, of: "set" },
  abort: { label: "Abort", glyph: "aborted", title: (name) => `Abort this run of ${name}`, grave: true, of: "set" },
};

export const actionOrder = Object.keys(wordings) as ActionName[];

export interface Effect {
  sentences: string[];
  /** Whom it touches. */
  targets: Target[];
}

export function effectOf(action: ActionName, rollout: Rollout, application?: string): Effect {
  const all = targetsOf(rollout);
  const underWay = all.filter((target) => target.state === "Progressing");
  const toGo = all.filter((target) => target.state === "Waiting" || target.state === "Pending");
  const failed = all.filter((target) => target.state === "Failed" && (application === undefined || application === "" || target.name === application));
  const lane = openLane(rollout);
  switch (action) {
    case "pause":
      return { sentences: ["Nothing more is started, healed or written until somebody resumes it.", ending(underWay.length), `${count(toGo.length, "Application")} stay as they are meanwhile.`], targets: underWay };
    case "resume":
      return { sentences: ["The rollout goes on where it was.", `${count(toGo.length, "Application")} have yet to go.`], targets: [] };
    case "abort":
      return { sentences: ["The run ends. Syncs and calls under way are ended with it, and what is deployed stays.", `${count(toGo.length, "Application")} keep what they have until a new commit or template begins another run.`], targets: underWay };
    case "retry":
      return { sentences: [`${count(failed.length, "Application")} ${failed.length === 1 ? "is" : "are"} tried again.`, "What is done already is not touched."], targets: failed };
    case "skip":
      return { sentences: [application === undefined || application === "" ? "Choose whom to skip." : `${application} counts as done for what this run asks of it, and no longer.`, "Nothing of it is changed. No good state is kept of what was skipped."], targets: all.filter((target) => target.name === application) };
    case "advance":
      return { sentences: lane === undefined ? ["No lane is open."] : advancing(lane), targets: [] };
    case "rollback":
      return { sentences: [lane === undefined ? "No lane is open." : `Applications that ${lane.title} has changed go back to their last good state, in reverse order.`, "Specification and commit are restored, not data. An Application without a good state is left as it is."], targets: changedIn(lane === undefined ? [] : [lane]) };
    case "rollback-all":
      return { sentences: ["Every Application that this run has changed goes back to its last good state, in reverse order.", "Specification and commit are restored, not data."], targets: changedIn(rollout.lanes) };
    case "approve-deletion":
      return { sentences: ["Exactly the deletion that waits now is approved, once. If more Applications vanish meanwhile, another approval is needed."], targets: all.filter((target) => target.state === "Deleting") };
  }
}

function ending(number: number): string {
  if (number === 0) return "Nothing is under way.";
  return `${count(number, "Application")} under way ${number === 1 ? "ends as it does" : "end as they do"}.`;
}

function advancing(lane: Lane): string[] {
  const waits = lane.gates.filter((gate) => gate.state === "Running" || gate.state === "Failed" || gate.state === "Pending").map((gate) => gate.name);
  if (lane.state === "Failed") return [`${lane.title} has failed; the next lane begins all the same.`];
  if (waits.length > 0) return [`${lane.title} no longer waits for ${waits.join(", ")}.`, "The next lane opens as soon as everything else is done."];
  return [`${lane.title} is left, and the next lane opens.`];
}

export function openLane(rollout: { lanes: Lane[] }): Lane | undefined {
  return rollout.lanes.find((lane) => lane.state === "Open" || lane.state === "Failed" || lane.state === "RollingBack");
}

/** Each Application once, also where it stands in a step and in a phase. */
export function targetsOf(rollout: { lanes: Lane[] }): Target[] {
  const seen = new Map<string, Target>();
  for (const lane of rollout.lanes) for (const target of lane.targets) if (!seen.has(target.name)) seen.set(target.name, target);
  return [...seen.values()];
}

function changedIn(lanes: Lane[]): Target[] {
  return targetsOf({ lanes }).filter((target) => target.state === "Healthy" || target.state === "Progressing" || target.state === "Failed");
}

/** The same word by the command line. */
export function commandFor(action: ActionName, rollout: { name: string; namespace: string }, application?: string): string {
  const verb = action === "rollback-all" ? "rollback" : action;
  return commandLine(["baton", "appset", verb, rollout.name, application, action === "rollback-all" && "--all", ...namespaceFlag(rollout.namespace)]);
}

/** Said only where it is not the one that the command line takes by itself. */
export function namespaceFlag(namespace: string): string[] {
  return namespace === "argocd" ? [] : ["-n", namespace];
}
