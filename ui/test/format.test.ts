import { describe, expect, it } from "vitest";
import { commandLine, count, duration, elapsed, percent, relative, safeHref, sharedPrefix, shellWord, shortRevision } from "../src/parts/format";
import { pathOf, withQuery } from "../src/api/request";
import { routeOf } from "../src/parts/route";

const seconds = (number: number) => number * 1000;

describe("times", () => {
  it.each([[0, "0s"], [59, "59s"], [61, "1m 1s"], [600, "10m"], [661, "11m"], [3600, "1h"], [3660, "1h 1m"], [90_000, "1d 1h"], [864_000, "10d"]])("%i seconds are written as %s", (length, text) => {
    expect(duration(seconds(length))).toBe(text);
  });

  it("are told from now, in both directions, and not at all where there is none", () => {
    const now = Date.parse("2026-01-01T12:00:00Z");
    expect(relative("2026-01-01T10:20:00Z", now)).toBe("1h ago");
    expect(relative("2026-01-01T12:00:30Z", now)).toBe("in 30s");
    expect(relative("2026-01-01T11:59:58Z", now)).toBe("just now");
    expect(relative("soon", now)).toBe("");
    expect(relative(undefined, now)).toBe("");
  });

  it("that are over do not grow", () => {
    expect(elapsed("2026-01-01T12:00:00Z", "2026-01-01T12:05:00Z", Date.parse("2027-01-01T00:00:00Z"))).toBe("5m");
  });
});

describe("numbers and names", () => {
  it("count one and many", () => {
    expect([count(1, "set"), count(1200, "set")]).toEqual(["1 set", "1,200 sets"]);
  });

  it("are not done before all is done", () => {
    expect([percent(999, 1000), percent(1000, 1000), percent(0, 0)]).toEqual([99, 100, 0]);
  });

  it("shorten commits and leave tags and branches", () => {
    expect([shortRevision("0123456789abcdef0123456789abcdef01234567"), shortRevision("v1.2.3"), shortRevision("release-2026")]).toEqual(["0123456", "v1.2.3", "release-2026"]);
  });

  it("say once what all have in common, up to a dash", () => {
    expect(sharedPrefix(["web-prod-eu-1", "web-prod-eu-2", "web-prod-us-1"])).toBe("web-prod-");
    expect(sharedPrefix(["web-1"])).toBe("");
    expect(sharedPrefix(["alpha", "alps"])).toBe("");
  });
});

describe("addresses", () => {
  it.each(["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:x", "git@example.com:a/b", "/relative", ""])("%s is no link", (address) => {
    expect(safeHref(address)).toBeUndefined();
  });

  it("lead to pages and mailboxes", () => {
    expect(safeHref("https://git.example.com/a.git")).toBe("https://git.example.com/a.git");
    expect(safeHref("mailto:team@example.com")).toBe("mailto:team@example.com");
  });

  it("keep a slash of a name inside its segment", () => {
    expect(pathOf("/api/v1/applications/{}/sync", "a/b")).toBe("/api/v1/applications/a%2Fb/sync");
    expect(withQuery("/x", { a: "1 2", none: undefined, empty: "" })).toBe("/x?a=1+2");
  });

  it("name a page, or none", () => {
    expect(routeOf("/")).toEqual({ page: "fleet" });
    expect(routeOf("/rollouts/argocd/web")).toEqual({ page: "rollout", namespace: "argocd", name: "web" });
    expect(routeOf("/applications/team%2Fa/x")).toEqual({ page: "application", namespace: "team/a", name: "x" });
    expect(routeOf("/rollouts/argocd")).toEqual({ page: "unknown" });
    expect(routeOf("/applications/%E0%A4%A/x")).toMatchObject({ page: "application" });
  });
});

describe("commands", () => {
  it("are quoted where a shell would read more than a word", () => {
    expect(shellWord("default/*")).toBe("'default/*'");
    expect(shellWord("it's")).toBe(`'it'\\''s'`);
    expect(commandLine(["baton", "app", false, undefined, "x y"])).toBe("baton app 'x y'");
  });
});
