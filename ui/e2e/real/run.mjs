// The tests against a fleet of their own: those of this folder, and those of the pages.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { startFleet } from "../../dev/fleet.mjs";

const here = new URL(".", import.meta.url).pathname;
const own = readdirSync(here).filter((name) => name.endsWith(".test.mjs")).sort().map((name) => here + name);
const wanted = process.argv.length > 2 ? process.argv.slice(2) : [new URL("../pages.test.mjs", import.meta.url).pathname, ...own];
/** Longest that a file of tests may take, in milliseconds. */
const longest = 15 * 60_000;

// Whoever ends this ends the fleet and the tests with it.
const ending = new AbortController();
const { signal } = ending;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, () => ending.abort(new Error(name)));

try {
  const fleet = await startFleet({ signal });
  try {
    process.exitCode = await run(fleet);
  } finally {
    await fleet.stop();
  }
} catch (error) {
  if (!signal.aborted) throw error;
}
if (signal.aborted) {
  console.error(`ended by ${signal.reason.message}`);
  process.exitCode = 130;
}

/** The fleet hears its hooks in this process, so tests have one of their own: this one must not stand still meanwhile. */
function run(fleet) {
  const tests = spawn(process.execPath, ["--test", "--test-concurrency=1", `--test-timeout=${longest}`, ...wanted], {
    stdio: "inherit",
    signal,
    env: {
      ...process.env,
      BATON_E2E_FLEET: fleet.home,
      BATON_E2E_URL: fleet.url,
      BATON_E2E_PASSWORD: fleet.admin.password,
      BATON_E2E_VIEWER_PASSWORD: fleet.viewer.password,
    },
  });
  tests.on("error", (error) => console.error(error.message));
  return new Promise((ended) => tests.once("close", (code) => ended(code ?? 1)));
}
