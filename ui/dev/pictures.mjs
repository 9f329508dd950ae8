// The pictures of the documentation, as the tests on a real fleet take them: `BATON=../target/debug/baton npm run pictures`.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a picture is called in docs/img, and in the tests. */
const pictures = {
  login: "login",
  fleet: "fleet",
  board: "board",
  "board-dark": "board-dark",
  "board-360": "board-360",
  phases: "phases",
  pause: "pause",
  approvals: "approvals",
  "approve-all": "approve-all",
  denied: "denied",
  application: "application",
  applications: "light-applications",
  audit: "audit",
  settings: "light-settings",
};

const taken = mkdtempSync(join(tmpdir(), "baton-pictures-"));
const here = new URL(".", import.meta.url).pathname;
try {
  const tests = spawnSync(process.execPath, [join(here, "../e2e/real/run.mjs")], { stdio: "inherit", env: { ...process.env, BATON_E2E_SCREENS: taken } });
  process.exitCode = tests.status ?? 1;
  const missing = Object.values(pictures).filter((name) => !existsSync(join(taken, `${name}.png`)));
  if (process.exitCode !== 0 || missing.length > 0) {
    console.error(`docs/img stays as it is: ${missing.length > 0 ? `no picture ${missing.join(", ")}` : "a test failed"}`);
    process.exitCode ||= 1;
  } else {
    for (const [name, from] of Object.entries(pictures)) copyFileSync(join(taken, `${from}.png`), join(here, "../../docs/img", `${name}.png`));
    console.log(`docs/img has ${Object.keys(pictures).length} new pictures`);
  }
} finally {
  rmSync(taken, { recursive: true, force: true });
}
