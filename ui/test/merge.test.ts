import { describe, expect, it } from "vitest";
import type { Lane, Rollout, RolloutEvent, Target } from "../src/api/shapes";
import { mergeFleet, mergeRollout } from "../src/live/merge";

const target = (name: string, state: Target["state"] = "Waiting"): Target => ({ name, namespace: "argocd", cluster: name, state, health: "Healthy", sync: "Synced" });
const counts = { total: 0, done: 0, updating: 0, failed: 0, waiting: 0 };
const lane = (id: string, targets: Target[]): Lane => ({ id, kind: id.startsWith("phase") ? "phase" : "step", title: id, selector: "", state: "Open", counts, gates: [], targets });
const rollout = (lanes: Lane[]): Rollout => ({
  name: "web", namespace: "argocd", project: "default", strategy: "RollingSync", state: "Progressing", reason: "", run: 1, counts, approvals: 0, health: "Progressing", lanes, blockers: [], conditions: [], actions: [],
});
const heads = (given: Rollout) => given.lanes.map(({ targets: _, ...head }) => head);
const change = (known: Rollout, rest: Partial<Extract<RolloutEvent, { type: "MODIFIED" }>>): RolloutEvent => ({ type: "MODIFIED", rollout: { ...known, lanes: heads(known) }, ...rest });

describe("an event is laid over a rollout", () => {
  const known = rollout([lane("step-1", [target("a"), target("b")]), lane("step-2", [target("c")])]);

  it("changes only the targets that it names, and keeps the rest as they are", () => {
    const next = mergeRollout(known, change(known, { targets: [{ lane: "step-1", ...target("b", "Healthy") }] }));
    expect(next?.lanes[0]?.targets.map((each) => each.state)).toEqual(["Waiting", "Healthy"]);
    expect(next?.lanes[0]?.targets[0]).toBe(known.lanes[0]?.targets[0]);
    expect(next?.lanes[1]).toBe(known.lanes[1]);
  });

  it("puts who joins where names are in order, numbers as people count them", () => {
    const wide = rollout([lane("step-1", [target("web-1"), target("web-10")])]);
    const next = mergeRollout(wide, change(wide, { targets: [{ lane: "step-1", ...target("web-2") }] }));
    expect(next?.lanes[0]?.targets.map((each) => each.name)).toEqual(["web-1", "web-2", "web-10"]);
  });

  it("takes out who left", () => {
    const next = mergeRollout(known, change(known, { removed: ["a"] }));
    expect(next?.lanes[0]?.targets.map((each) => each.name)).toEqual(["b"]);
  });

  it("moves who turns up in another step", () => {
    const next = mergeRollout(known, change(known, { targets: [{ lane: "step-2", ...target("a") }] }));
    expect(next?.lanes.map((each) => each.targets.map((one) => one.name))).toEqual([["b"], ["a", "c"]]);
  });

  it("leaves an Application in its step when its phase changes", () => {
    const both = rollout([lane("step-1", [target("a")]), lane("phase-0-0", [target("a")]), lane("phase-0-1", [])]);
    const next = mergeRollout(both, change(both, { targets: [{ lane: "phase-0-1", ...target("a") }] }));
    expect(next?.lanes.map((each) => each.targets.length)).toEqual([1, 0, 1]);
  });

  it("tells of an Application in all rows it stands in, though the event names one", () => {
    const both = rollout([lane("step-1", [target("a")]), lane("phase-0-0", [target("a")])]);
    const next = mergeRollout(both, change(both, { targets: [{ lane: "phase-0-0", ...target("a", "Healthy") }] }));
    expect(next?.lanes.map((each) => each.targets[0]?.state)).toEqual(["Healthy", "Healthy"]);
  });

  it("forgets lanes that are no longer told of", () => {
    const next = mergeRollout(known, { type: "MODIFIED", rollout: { ...known, lanes: heads(known).slice(0, 1) } });
    expect(next?.lanes.map((each) => each.id)).toEqual(["step-1"]);
  });

  it("asks for the whole where nothing is known to lay it over, or where it was deleted", () => {
    expect(mergeRollout(undefined, change(known, {}))).toBeUndefined();
    expect(mergeRollout(known, { type: "DELETED", rollout: { name: "web", namespace: "argocd" } })).toBeUndefined();
  });

  it("takes lists that are left out for empty ones", () => {
    const bare = { ...known, blockers: undefined, actions: undefined, lanes: [{ ...lane("step-1", []), gates: undefined, targets: undefined }] } as unknown as Rollout;
    expect(mergeRollout(undefined, { type: "ADDED", rollout: bare })).toMatchObject({ blockers: [], actions: [], lanes: [{ gates: [], targets: [] }] });
  });
});

describe("an event is laid over the fleet", () => {
  it("keeps what its page shows and no targets", () => {
    const fleet = mergeFleet(new Map(), { type: "ADDED", rollout: rollout([lane("step-1", [target("a")])]) });
    expect(fleet.get("argocd/web")).not.toHaveProperty("lanes");
    expect(mergeFleet(fleet, { type: "DELETED", rollout: { name: "web", namespace: "argocd" } }).size).toBe(0);
  });

  it("tells sets of the same name in two namespaces apart", () => {
    const one = mergeFleet(new Map(), { type: "ADDED", rollout: rollout([]) });
    expect(mergeFleet(one, { type: "ADDED", rollout: { ...rollout([]), namespace: "team-a" } }).size).toBe(2);
  });
});
