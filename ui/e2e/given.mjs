// What the tests run against: a server named by BATON_E2E_URL, or the mock. Against a real server the environment also names who signs in,
// which rollout is watched, and commands that make things happen there.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startMock } from "../dev/server.mjs";

const from = process.env;

export async function given() {
  const mock = from.BATON_E2E_URL === undefined ? await startMock() : undefined;
  return {
    mocked: mock !== undefined,
    url: mock?.url ?? from.BATON_E2E_URL.replace(/\/$/, ""),
    admin: { user: from.BATON_E2E_USER ?? "admin", password: from.BATON_E2E_PASSWORD ?? "admin" },
    viewer: { user: from.BATON_E2E_VIEWER ?? "viewer", password: from.BATON_E2E_VIEWER_PASSWORD ?? "viewer" },
    /** namespace/name of a set that moves, or moves once `begin` has run. */
    rollout: from.BATON_E2E_ROLLOUT ?? "argocd/web",
    /** One with more than 60 Applications in a lane. */
    large: from.BATON_E2E_LARGE ?? (mock === undefined ? undefined : "argocd/edge"),
    /** Makes a commit that begins a run. */
    begin: () => command(from.BATON_E2E_BEGIN),
    /** Makes deletions wait for approval: one ordinary one, then several. */
    needApproval: () => command(from.BATON_E2E_NEED_APPROVAL),
    /** Fails unless what was approved is gone. */
    gone: () => command(from.BATON_E2E_GONE),
    stop: () => mock?.stop(),
  };
}

function command(line) {
  if (line !== undefined && line !== "") execFileSync("sh", ["-c", line], { stdio: "inherit" });
}

/** Keeps a picture where BATON_E2E_SCREENS names a folder. */
export async function picture(page, name) {
  if (from.BATON_E2E_SCREENS === undefined) return;
  mkdirSync(from.BATON_E2E_SCREENS, { recursive: true });
  await page.screenshot({ path: join(from.BATON_E2E_SCREENS, `${name}.png`) });
}
