// Lays events of the stream over what is known. What did not change keeps its identity, so that drawing again costs what changed.

import type { FleetEvent, Lane, LaneHead, Rollout, RolloutEvent, RolloutSummary, Target } from "../api/shapes";

export const keyOf = (of: { namespace: string; name: string }): string => `${of.namespace}/${of.name}`;

/** The rollout after an event. A change of one that is not known cannot be laid over anything: `undefined`, and the caller asks anew. */
export function mergeRollout(known: Rollout | undefined, event: RolloutEvent): Rollout | undefined {
  if (event.type === "ADDED") return settle(event.rollout);
  if (event.type === "DELETED" || known === undefined) return undefined;
  const changed = new Map<string, Target[]>();
  const latest = new Map<string, Target>();
  const movedTo = new Map<string, string[]>();
  for (const { lane, ...target } of event.targets ?? []) {
    push(changed, lane, target);
    latest.set(target.name, target);
    push(movedTo, target.name, lane);
  }
  const removed = new Set(event.removed ?? []);
  const before = new Map(known.lanes.map((lane) => [lane.id, lane]));
  const lanes = (event.rollout.lanes ?? []).map((head) => {
    const lane = before.get(head.id);
    const gone = (name: string) => removed.has(name) || leftFor(head.id, movedTo.get(name));
    const targets = head.targets ?? mergeTargets(lane?.targets ?? [], changed.get(head.id) ?? [], latest, gone);
    return unchanged(lane, head, targets) ?? { ...head, gates: head.gates ?? [], targets };
  });
  return settle({ ...event.rollout, lanes });
}

/** The lane as it was, where nothing of it is new. Heads are small, and written by one hand: equal text is equal. */
function unchanged(known: Lane | undefined, head: LaneHead, targets: Target[]): Lane | undefined {
  if (known === undefined || known.targets !== targets) return undefined;
  const { targets: _, ...before } = known;
  const { targets: __, ...now } = head;
  return JSON.stringify(before) === JSON.stringify(now) ? known : undefined;
}

/** Which of several rows of lanes a lane belongs to: the steps, the phases of one generator, or what is in none. */
export function trackOf(lane: { id: string; kind: string }): string {
  if (lane.kind !== "phase") return lane.kind === "step" ? "steps" : "unmatched";
  return `phases-${lane.id.split("-")[1] ?? "0"}`;
}

function trackOfId(id: string): string {
  if (id.startsWith("phase-")) return `phases-${id.split("-")[1] ?? "0"}`;
  return id.startsWith("step-") ? "steps" : "unmatched";
}

/** An Application that turns up in another lane of the same row has left this one. One of steps and phases stands in both rows. */
function leftFor(lane: string, others: string[] | undefined): boolean {
  if (others === undefined || others.includes(lane)) return false;
  return others.some((other) => trackOfId(other) === trackOfId(lane) || lane === "unmatched");
}

/** An Application of steps and phases may be told of in one of its lanes only: what is new about it holds in the others too. */
function mergeTargets(before: Target[], changed: Target[], latest: ReadonlyMap<string, Target>, gone: (name: string) => boolean): Target[] {
  if (changed.length === 0 && !before.some((target) => latest.has(target.name) || gone(target.name))) return before;
  const news = new Map(changed.map((target) => [target.name, target]));
  const kept = before
    .filter((target) => !gone(target.name))
    .map((target) => {
      const next = news.get(target.name);
      news.delete(target.name);
      return next ?? latest.get(target.name) ?? target;
    });
  if (news.size === 0) return kept;
  return [...kept, ...news.values()].sort((left, right) => compareNames(left.name, right.name));
}

function settle(rollout: Omit<Rollout, "lanes"> & { lanes: LaneHead[] | null }): Rollout {
  const lanes: Lane[] = (rollout.lanes ?? []).map((lane) => (isWhole(lane) ? lane : { ...lane, gates: lane.gates ?? [], targets: lane.targets ?? [] }));
  return { ...rollout, lanes, blockers: rollout.blockers ?? [], conditions: rollout.conditions ?? [], actions: rollout.actions ?? [] };
}

const isWhole = (lane: LaneHead): lane is Lane => Array.isArray(lane.gates) && Array.isArray(lane.targets);

/** The fleet after an event: only what its page shows is kept, also of a server that does not know `summary` and sends more. */
export function mergeFleet(known: ReadonlyMap<string, RolloutSummary>, event: FleetEvent): Map<string, RolloutSummary> {
  const next = new Map(known);
  if (event.type === "DELETED") next.delete(keyOf(event.rollout));
  else next.set(keyOf(event.rollout), summaryOf(event.rollout));
  return next;
}

function summaryOf(rollout: RolloutSummary): RolloutSummary {
  const { name, namespace, project, strategy, state, reason, run, revision, startedAt, finishedAt, counts, approvals, health } = rollout;
  return { name, namespace, project, strategy, state, reason, run, revision, startedAt, finishedAt, counts, approvals, health };
}

/** As people count: web-2 before web-10. */
export const compareNames = new Intl.Collator("en", { numeric: true }).compare;

function push<K, V>(into: Map<K, V[]>, key: K, value: V): void {
  const list = into.get(key);
  if (list === undefined) into.set(key, [value]);
  else list.push(value);
}
