import { describe, expect, it } from "vitest";
import type { TreeNode } from "../src/api/shapes";
import { contextOf, differs, diffOf, linesOf } from "../src/applications/difference";
import { edgePath, foldLimit, layoutOf, neighbour, nodeHeight, nodeWidth, treeOf } from "../src/applications/graph";
import { objectOf } from "../src/applications/rights";
import { commandFor, requestFor } from "../src/applications/SyncDialog";

const node = (kind: string, name: string, parent?: string): TreeNode => ({ kind, name, uid: `${kind}/${name}`, ...(parent === undefined ? {} : { parentRefs: [{ kind: "", name: "", uid: parent }] }) });

describe("the graph of resources", () => {
  const nodes = [node("Deployment", "web"), node("ReplicaSet", "web-1", "Deployment/web"), node("Pod", "web-1-a", "ReplicaSet/web-1"), node("Pod", "web-1-b", "ReplicaSet/web-1"), node("Service", "web")];

  it("puts nobody on top of another", () => {
    const { placed } = layoutOf(treeOf("app", "Healthy", nodes));
    for (const left of placed) for (const right of placed) if (left !== right) expect(Math.abs(left.x - right.x) >= nodeWidth || Math.abs(left.y - right.y) >= nodeHeight).toBe(true);
  });

  it("puts children right of their parent, and holds all of them", () => {
    const { placed, width, height } = layoutOf(treeOf("app", "Healthy", nodes));
    expect(placed).toHaveLength(6);
    for (const each of placed) {
      expect(each.x + nodeWidth).toBeLessThanOrEqual(width);
      expect(each.y + nodeHeight).toBeLessThanOrEqual(height);
      if (each.parent !== undefined) expect(each.x).toBeGreaterThan(placed[each.parent]?.x ?? Infinity);
    }
  });

  it("folds many siblings of a kind until they are asked for, in the worst health of them", () => {
    const pods = Array.from({ length: foldLimit + 1 }, (_, index): TreeNode => ({ ...node("Pod", `p-${index}`), health: { status: index === 4 ? "Degraded" : "Healthy" } }));
    const [folded] = treeOf("app", "Healthy", pods).children;
    expect(folded).toMatchObject({ title: `${foldLimit + 1} × Pod`, health: "Degraded", children: [] });
    expect(treeOf("app", "Healthy", pods, new Set([folded?.key ?? ""])).children).toHaveLength(foldLimit + 1);
  });

  it("shows what refers to a parent nobody knows, and ends on owners that own each other", () => {
    expect(treeOf("app", undefined, [node("Pod", "lost", "gone")]).children).toHaveLength(1);
    const circle = [node("A", "a", "B/b"), node("B", "b", "A/a"), node("C", "self", "C/self")];
    expect(treeOf("app", undefined, circle).children.map((each) => each.title)).toEqual(["self"]);
  });

  it("is gone through along its lines", () => {
    const { placed } = layoutOf(treeOf("app", "Healthy", nodes));
    const title = (index: number | undefined) => placed[index ?? -1]?.node.title;
    expect(title(neighbour("ArrowRight", 0, placed))).toBe("web");
    const pod = placed.findIndex((each) => each.node.title === "web-1-a");
    expect(title(neighbour("ArrowDown", pod, placed))).toBe("web-1-b");
    expect(title(neighbour("ArrowLeft", pod, placed))).toBe("web-1");
    expect(neighbour("ArrowLeft", 0, placed)).toBeUndefined();
    expect(neighbour("ArrowUp", pod, placed)).toBeUndefined();
  });

  it("draws lines that begin and end at the edges of nodes", () => {
    const { placed } = layoutOf(treeOf("app", "Healthy", nodes));
    const [root, first] = placed;
    if (root === undefined || first === undefined) throw new Error("two nodes are placed above");
    expect(edgePath(root, first)).toMatch(new RegExp(`^M${nodeWidth} .*H${first.x}$`));
  });
});

describe("a difference", () => {
  it("is written as YAML", () => {
    expect(linesOf('{"a":1,"b":{"c":["x",{"d":true,"e":"y: z"}]},"f":{},"g":""}')).toEqual(["a: 1", "b:", "  c:", "  - x", "  - d: true", '    e: "y: z"', "f: {}", 'g: ""']);
  });

  it("quotes texts that would read as something else", () => {
    expect(linesOf('{"a":"1","b":"true","c":"- x","d":"plain text"}')).toEqual(['a: "1"', 'b: "true"', 'c: "- x"', "d: plain text"]);
  });

  it("has nothing of what is not there", () => {
    expect([linesOf("null"), linesOf(undefined), linesOf("")]).toEqual([[], [], []]);
  });

  it("shows what goes and what comes, in its place", () => {
    const lines = diffOf(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]);
    expect(lines.map((line) => `${line.kind[0]}${line.text}`)).toEqual(["sa", "rb", "ax", "sc", "sd", "ae"]);
    expect(differs(lines)).toBe(true);
    expect(differs(diffOf(["a"], ["a"]))).toBe(false);
  });

  it("gives back both sides, whatever they are", () => {
    let seed = 1;
    const next = () => (seed = (seed * 16807) % 2147483647);
    for (let round = 0; round < 300; round += 1) {
      const side = () => Array.from({ length: next() % 9 }, () => "abc"[next() % 3] ?? "");
      const [from, to] = [side(), side()];
      const lines = diffOf(from, to);
      expect(lines.filter((line) => line.kind !== "added").map((line) => line.text)).toEqual(from);
      expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text)).toEqual(to);
    }
  });

  it("leaves out what is alike far away", () => {
    const from = Array.from({ length: 40 }, (_, index) => `l${index}`);
    const shown = contextOf(diffOf(from, from.with(20, "new")));
    expect(shown.map((line) => line.kind)).toEqual(["gap", "same", "same", "same", "removed", "added", "same", "same", "same", "gap"]);
    expect(shown[0]?.text).toBe("17 lines alike");
  });
});

describe("a sync", () => {
  const wish = { revision: "v2", prune: true, dryRun: false, force: false, replace: true, serverSide: false, outOfSyncOnly: false };
  const chosen = [{ group: "apps", kind: "Deployment", name: "web", namespace: "shop" }];

  it("asks the server for what was chosen", () => {
    expect(requestFor(wish, chosen)).toEqual({ revision: "v2", prune: true, dryRun: false, strategy: { hook: { force: false } }, syncOptions: { items: ["Replace=true"] }, resources: chosen });
  });

  it("says the same by the command line", () => {
    expect(commandFor({ name: "web", namespace: "argocd" }, wish, chosen)).toBe("baton app sync web --revision v2 --prune --replace --resource apps:Deployment:shop/web");
  });
});

it("a right names the namespace only outside the control plane", () => {
  const app = (namespace: string) => ({ metadata: { name: "web", namespace }, spec: { project: "shop", destination: {} } });
  expect(objectOf(app("argocd"), "argocd")).toBe("shop/web");
  expect(objectOf(app("team-a"), "argocd")).toBe("shop/team-a/web");
});
