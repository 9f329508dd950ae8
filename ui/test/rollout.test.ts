import { describe, expect, it } from "vitest";
import type { Gate, Lane, Rollout, Target } from "../src/api/shapes";
import { commandFor, effectOf } from "../src/rollout/effect";
import { batonIn, grouped, matches, squaresOf, stepInGrid, tracksOf } from "../src/rollout/tracks";

const target = (name: string, state: Target["state"] = "Waiting"): Target => ({ name, namespace: "argocd", cluster: `c-${name}`, state, health: "Healthy", sync: "Synced" });
const gate = (kind: Gate["kind"], state: Gate["state"]): Gate => ({ kind, name: `${kind}-x`, state });
const lane = (id: string, state: Lane["state"], targets: Target[] = [], gates: Gate[] = []): Lane => ({
  id, kind: id.startsWith("phase") ? "phase" : id === "unmatched" ? "unmatched" : "step", title: id, selector: "", state, gates, targets,
  counts: { total: targets.length, done: targets.filter((each) => each.state === "Healthy").length, updating: 0, failed: 0, waiting: 0 },
});

describe("lanes become rows with zones between", () => {
  it("puts what ends a lane and what begins the next into one zone", () => {
    const [row] = tracksOf([lane("phase-0-0", "Open", [], [gate("preHook", "Passed"), gate("check", "Pending"), gate("wait", "Pending")]), lane("phase-0-1", "Pending", [], [gate("preHook", "Pending"), gate("postHook", "Pending")])]);
    expect(row?.zones.map((zone) => zone.gates.map((each) => each.kind))).toEqual([["preHook"], ["check", "wait", "preHook"], ["postHook"]]);
  });

  it("gives steps, the phases of each generator, and who is in none a row each", () => {
    const rows = tracksOf([lane("step-1", "Open"), lane("phase-0-0", "Open"), lane("phase-1-0", "Open"), lane("unmatched", "Pending")]);
    expect(rows.map((row) => row.title)).toEqual(["Steps", "Phases of generator 0", "Phases of generator 1", "Outside the order"]);
    expect(rows[3]?.baton).toBeUndefined();
  });
});

describe("the baton is", () => {
  it("in the lane that is open", () => expect(batonIn([lane("step-1", "Done"), lane("step-2", "Open", [target("a")])])).toEqual({ at: "lane", index: 1 }));
  it("in the zone after it while a gate is not passed", () => expect(batonIn([lane("phase-0-0", "Open", [target("a", "Healthy")], [gate("check", "Running")])])).toEqual({ at: "zone", index: 1 }));
  it("in the zone before it while a hook runs", () => expect(batonIn([lane("phase-0-0", "Open", [target("a")], [gate("preHook", "Running")])])).toEqual({ at: "zone", index: 0 }));
  it("between a lane that is done and one that has not begun", () => expect(batonIn([lane("step-1", "Done"), lane("step-2", "Pending")])).toEqual({ at: "zone", index: 1 }));
  it("before the first lane once its hook is called", () => expect(batonIn([lane("phase-0-0", "Pending", [], [gate("preHook", "Running")])])).toEqual({ at: "zone", index: 0 }));
  it("nowhere before the start and after the end", () => {
    expect(batonIn([lane("step-1", "Pending")])).toBeUndefined();
    expect(batonIn([lane("step-1", "Done"), lane("step-2", "Skipped")])).toBeUndefined();
  });
});

describe("targets", () => {
  it("are grouped by what a person would ask, failed first", () => {
    const groups = grouped([target("a", "Healthy"), target("b", "Failed"), target("c", "Pending"), target("d", "Waiting")]);
    expect(groups.map(({ group, targets }) => [group, targets.length])).toEqual([["failed", 1], ["next", 2], ["done", 1]]);
  });

  it("share a square where there are too many, in the state of the worst", () => {
    const many = Array.from({ length: 5 }, (_, index) => target(`a-${index}`, index === 3 ? "Failed" : "Healthy"));
    expect(squaresOf(many, 3).map((square) => [square.state, square.targets.length])).toEqual([["Healthy", 2], ["Failed", 2], ["Healthy", 1]]);
    expect(squaresOf(many)).toHaveLength(5);
    expect(squaresOf([])).toEqual([]);
  });

  it("are found by name, cluster and group", () => {
    expect(matches(target("web-eu"), "WEB", "")).toBe(true);
    expect(matches(target("web-eu"), "c-web", "next")).toBe(true);
    expect(matches(target("web-eu"), "", "done")).toBe(false);
  });

  it.each([["ArrowRight", 0, 1], ["ArrowLeft", 0, 0], ["ArrowDown", 1, 5], ["ArrowUp", 5, 1], ["ArrowDown", 9, 9], ["End", 2, 9], ["Home", 7, 0]])("%s leads from square %i to %i of ten in rows of four", (key, from, to) => {
    expect(stepInGrid(key, from, 10, 4)).toBe(to);
  });

  it("leave other keys alone", () => expect(stepInGrid("a", 0, 10, 4)).toBeUndefined());
});

describe("what a word would do", () => {
  const rollout = { name: "web", namespace: "argocd", lanes: [lane("step-1", "Open", [target("a", "Progressing"), target("b", "Failed"), target("c", "Healthy"), target("d")], [gate("wait", "Running")])] } as Rollout;

  it("names whom a retry touches, all or one", () => {
    expect(effectOf("retry", rollout).targets.map((each) => each.name)).toEqual(["b"]);
    expect(effectOf("retry", rollout, "other").targets).toEqual([]);
  });

  it("names what goes on while it is paused", () => expect(effectOf("pause", rollout).sentences.join(" ")).toContain("1 Application under way ends as it does"));
  it("names the wait that advance ends", () => expect(effectOf("advance", rollout).sentences[0]).toBe("step-1 no longer waits for wait-x."));
  it("names whom a rollback puts back", () => expect(effectOf("rollback", rollout).targets.map((each) => each.name)).toEqual(["a", "b", "c"]));

  it("is said by the command line too", () => {
    expect(commandFor("rollback-all", rollout)).toBe("baton appset rollback web --all");
    expect(commandFor("retry", { name: "web", namespace: "team-a" }, "web-eu")).toBe("baton appset retry web web-eu -n team-a");
  });
});
