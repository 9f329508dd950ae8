import { describe, expect, it } from "vitest";
import type { Application, Approval, RolloutState, RolloutSummary } from "../src/api/shapes";
import { askedFor, standingOf } from "../src/applications/list";
import { blastWords, byKind, commandFor, inOrder as approvalsInOrder, wordToType } from "../src/approvals/gravity";
import { asked, concernOf, headline, inOrder } from "../src/fleet/order";

const set = (name: string, state: RolloutState, rest: Partial<RolloutSummary> = {}): RolloutSummary => ({
  name, namespace: "argocd", project: "default", strategy: "RollingSync", state, reason: "", counts: { total: 1, done: 1, updating: 0, failed: 0, waiting: 0 }, approvals: 0, health: "Healthy", ...rest,
});

describe("the fleet", () => {
  it("shows failed and waiting sets first, then by name", () => {
    const order = inOrder([set("z", "Complete"), set("b", "Progressing"), set("a", "Progressing"), set("w", "Waiting"), set("f", "Failed"), set("p", "Complete", { approvals: 1 })]);
    expect(order.map((each) => each.name)).toEqual(["f", "p", "w", "a", "b", "z"]);
  });

  it("counts what waits for a person as in need of one, also where it is complete", () => {
    expect(concernOf(set("a", "Complete", { approvals: 2 }))).toBe("attention");
    expect(concernOf(set("a", "Complete", { health: "Degraded" }))).toBe("attention");
    expect(concernOf(set("a", "Complete"))).toBe("settled");
    expect(concernOf(set("a", "Surprising" as RolloutState))).toBe("attention");
  });

  it("is filtered by text, concern and project at once", () => {
    const each = set("web", "Progressing", { project: "shop", revision: "abc1234" });
    expect(asked(each, { text: "ABC", concern: "moving", project: "shop" })).toBe(true);
    expect(asked(each, { text: "", concern: "settled", project: "" })).toBe(false);
    expect(asked(each, { text: "", concern: "", project: "other" })).toBe(false);
  });

  it("begins with what matters", () => {
    expect(headline([set("a", "Failed"), set("b", "Progressing")])).toBe("One set needs you");
    expect(headline([set("b", "Progressing"), set("c", "Complete")])).toBe("One rollout is under way");
    expect(headline([set("c", "Complete")])).toBe("All is well");
  });
});

const approval = (rest: Partial<Approval> = {}): Approval => ({
  id: "prune.web", kind: "prune", object: { kind: "Application", namespace: "argocd", name: "web" }, project: "default", since: "2026-01-01T00:00:00Z", why: "", resources: [], blast: { resources: 1, applications: 0 }, setHash: "h", allowed: true, ...rest,
});
const resource = (kind: string, grave = false, approved = false) => ({ group: "", kind, name: kind.toLowerCase(), approved, grave });

describe("approvals", () => {
  it("take a click for a few ordinary resources", () => expect(wordToType([approval({ resources: [resource("ConfigMap")] })])).toBeUndefined());
  it("ask for the name where something grave goes", () => expect(wordToType([approval({ resources: [resource("Namespace", true)] })])).toBe("web"));
  it("ask for the name where more than twenty go", () => expect(wordToType([approval({ blast: { resources: 21, applications: 0 } })])).toBe("web"));
  it("add up what several let go", () => expect(wordToType([approval({ blast: { resources: 15, applications: 0 } }), approval({ id: "b", blast: { resources: 6, applications: 0 } })])).toBe("approve 2"));
  it("do not ask again for what is approved already", () => expect(wordToType([approval({ resources: [resource("Namespace", true, true)] })])).toBeUndefined());
  it("count kinds, grave ones first", () => expect(byKind([resource("Service"), resource("Service"), resource("Namespace", true)]).map((each) => `${each.number} ${each.kind}`)).toEqual(["1 Namespace", "2 Service"]));
  it("show what is grave first, then what waits longest", () => {
    const order = approvalsInOrder([approval({ id: "new", since: "2026-01-02T00:00:00Z" }), approval({ id: "old" }), approval({ id: "grave", since: "2026-01-03T00:00:00Z", resources: [resource("Namespace", true)] })]);
    expect(order.map((each) => each.id)).toEqual(["grave", "old", "new"]);
  });
  it("tell the most that can happen", () => expect(blastWords([approval(), approval({ blast: { resources: 3, applications: 2 } })])).toBe("4 resources, 2 Applications"));
  it("are given by the command line too", () => {
    expect(commandFor("approve", [approval()], "")).toBe("baton app confirm-deletion web");
    expect(commandFor("reject", [approval()], "not now")).toBe("baton approvals reject prune/argocd/web --reason 'not now'");
  });
});

const app = (rest: Partial<NonNullable<Application["status"]>>, labels?: Record<string, string>): Application => ({ metadata: { name: "web-eu", namespace: "argocd", ...(labels === undefined ? {} : { labels }) }, spec: { project: "shop", destination: { name: "eu-1" } }, status: rest });

describe("an Application is listed", () => {
  it("by the gravest that holds", () => {
    expect(standingOf(app({ health: { status: "Degraded" }, sync: { status: "OutOfSync" } }))).toBe("degraded");
    expect(standingOf(app({ health: { status: "Healthy" }, sync: { status: "OutOfSync" } }))).toBe("outofsync");
    expect(standingOf(app({ health: { status: "Healthy" }, sync: { status: "Synced" } }))).toBe("well");
    expect(standingOf(app({}))).toBe("other");
  });

  it("where every word is found in a name, cluster, project or label", () => {
    const one = app({}, { env: "prod" });
    expect(askedFor(one, "eu-1 SHOP env=prod", "")).toBe(true);
    expect(askedFor(one, "eu-1 env=dev", "")).toBe(false);
  });
});
