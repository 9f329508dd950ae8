// Whether a person can follow a rollout of a real fleet, hold it, and let it go on. What Pods do is decided here: they get ready when a test lets them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, signedIn } from "../../dev/browser.mjs";
import { deployment } from "../../dev/estate.mjs";
import { Fleet } from "../../dev/fleet.mjs";
import { unreadable } from "../contrast.mjs";
import { picture } from "../given.mjs";
import { inOrder, readable, record, stand } from "./board.mjs";

const fleet = new Fleet(process.env.BATON_E2E_FLEET);
const clusters = ["dev", "staging", "prod-eu", "prod-us"];
let browser;

before(async () => {
  browser = await openBrowser();
});

after(() => browser?.close());

async function openBoard(set, options) {
  const signed = await signedIn(browser, fleet.url, fleet.admin.user, fleet.admin.password, options);
  await readable(signed.page);
  await signed.page.goto(`${fleet.url}/rollouts/argocd/${set}`);
  await signed.page.getByRole("progressbar", { name: `Progress of ${set}` }).waitFor();
  return signed;
}

function release(set, version) {
  fleet.write(`${set}/deployment.yaml`, deployment(set, version));
  const revision = fleet.commit(`${set} ${version}`);
  fleet.look();
  return revision;
}

const image = (set, version) => `registry.example.com/${set}:${version}`;
const state = (page, word) => page.locator("header .chip-large", { hasText: word }).waitFor({ timeout: 120_000 });
const done = (prod) => ({ Done: prod });

/** A rollout under way can be read in the dark, and on a telephone, where it is seen all at once. */
async function looks(set, word) {
  for (const [name, options] of [["dark", { colorScheme: "dark" }], ["360", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }]]) {
    const { context, page, problems } = await openBoard(set, options);
    await page.locator("header .chip-large", { hasText: word }).waitFor();
    assert.deepEqual(await unreadable(page), [], name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${name}: nothing sticks out`);
    await picture(page, `board-${name}`);
    assert.deepEqual(problems, [], name);
    await context.close();
  }
}

async function act(page, button, reason) {
  await page.getByRole("button", { name: button, exact: true }).click();
  const dialog = page.getByRole("dialog");
  if (reason !== undefined) await dialog.getByLabel("Reason, for the audit log").fill(reason);
  await dialog.getByRole("button", { name: button, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

test("a commit goes through the steps one after the other, and the cards with it", async () => {
  const { context, page, problems } = await openBoard("web", { reducedMotion: "no-preference" });
  const [one, two, three] = [["web-dev"], ["web-staging"], ["web-prod-eu", "web-prod-us"]];
  await stand(page, { "step-1": { Done: one }, "step-2": { Done: two }, "step-3": { Done: three } });
  const { run } = await fleet.rollout("web");
  const seen = await record(page);
  for (const cluster of clusters) fleet.hold(cluster, "web");
  const revision = release("web", "2.0");
  await stand(page, { "step-1": { "Under way": one }, "step-2": { "To go": two }, "step-3": { "To go": three } });
  await state(page, "Under way");
  await page.locator(".strip", { hasText: `#${run + 1}` }).getByText(revision.slice(0, 7)).waitFor();
  await picture(page, "board");
  await looks("web", /Under way/);
  fleet.letGo("dev", "web");
  await stand(page, { "step-1": { Done: one }, "step-2": { "Under way": two }, "step-3": { "To go": three } });
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "web")), ["2.0", "2.0", "1.0", "1.0"].map((version) => image("web", version)));
  fleet.letGo("staging", "web");
  await stand(page, { "step-1": { Done: one }, "step-2": { Done: two }, "step-3": { "Under way": ["web-prod-eu"], "To go": ["web-prod-us"] } });
  fleet.letGo("prod-eu", "web");
  await stand(page, { "step-1": { Done: one }, "step-2": { Done: two }, "step-3": { "Under way": ["web-prod-us"], Done: ["web-prod-eu"] } });
  fleet.letGo("prod-us", "web");
  await stand(page, { "step-1": done(one), "step-2": done(two), "step-3": done(three) });
  await state(page, "Complete");
  inOrder(await seen());
  assert.deepEqual(problems, []);
  await context.close();
});

test("a rollout that is paused stands where it was until it is resumed, and the audit log says why", async () => {
  const { context, page } = await openBoard("web");
  fleet.hold("dev", "web");
  release("web", "3.0");
  await stand(page, { "step-1": { "Under way": ["web-dev"] }, "step-2": { "To go": ["web-staging"] }, "step-3": { "To go": ["web-prod-eu", "web-prod-us"] } });
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Nothing more is started").waitFor();
  await dialog.getByText(/baton appset pause /).waitFor();
  await dialog.getByText(/Plan of the set/).waitFor();
  await dialog.getByLabel("Reason, for the audit log").fill("looking at the error rate");
  await picture(page, "pause");
  await dialog.getByRole("button", { name: "Pause", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await state(page, "Paused");
  // What is under way ends as it does, and still nobody goes on.
  fleet.letGo("dev", "web");
  await fleet.until("web-dev is healthy", () => fleet.standing("web-dev") === "Healthy/Synced");
  await fleet.hasLooked("web");
  await fleet.hasLooked("web");
  // A set that is paused asks for no comparison either, and without one nothing counts as done.
  await stand(page, { "step-1": { "Under way": ["web-dev"] }, "step-2": { "To go": ["web-staging"] }, "step-3": { "To go": ["web-prod-eu", "web-prod-us"] } });
  await state(page, "Paused");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "web")), ["3.0", "2.0", "2.0", "2.0"].map((version) => image("web", version)));
  await act(page, "Resume");
  await state(page, "Complete");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "web")), clusters.map(() => image("web", "3.0")));
  await page.goto(`${fleet.url}/audit`);
  const row = page.locator("tr, li").filter({ hasText: "looking at the error rate" }).first();
  await row.getByText("admin").first().waitFor();
  await context.close();
});

test("a set that is paused while all is done says so, and its next run begins when it is resumed", async () => {
  const { context, page } = await openBoard("web");
  await state(page, "Complete");
  const { run } = await fleet.rollout("web");
  await act(page, "Pause");
  await state(page, "Paused");
  await page.getByText("the next run begins once it is resumed").waitFor();
  release("web", "4.0");
  await fleet.hasLooked("web");
  await fleet.hasLooked("web");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "web")), clusters.map(() => image("web", "3.0")));
  await act(page, "Resume");
  await page.locator(".strip", { hasText: `#${run + 1}` }).waitFor({ timeout: 120_000 });
  await state(page, "Complete");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "web")), clusters.map(() => image("web", "4.0")));
  await context.close();
});

test("between phases stand hooks, checks and waits; a person's word ends a wait", async () => {
  const { context, page } = await openBoard("delivery");
  const gate = (zone, name, text) => page.getByRole("list", { name: zone }).getByRole("listitem").filter({ hasText: name }).getByText(text).waitFor({ timeout: 120_000 });
  const [first, second] = ["Between canary and staging", "Between staging and everywhere"];
  await fleet.answers("/error-rate", 503);
  release("delivery", "2.0");
  await gate(first, "error-rate", "Check · running");
  await stand(page, { "phase-0-0": { Done: ["delivery-dev"] }, "phase-0-1": { "To go": ["delivery-staging"] }, "phase-0-2": { "To go": ["delivery-prod-eu", "delivery-prod-us"] } });
  await gate("Before canary", "open-change", "Before · passed");
  await fleet.answers("/error-rate", 200);
  await gate(first, "error-rate", "Check · passed");
  await gate(first, "2h", /^Wait · running · .* left$/);
  await picture(page, "phases");
  await fleet.hasLooked("delivery");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "delivery")), ["2.0", "1.0", "1.0", "1.0"].map((version) => image("delivery", version)));
  await fleet.answers("/latency", 503);
  await act(page, "Advance", "two hours are enough for today");
  await gate(first, "tell-on-call", "Before · passed");
  await gate(second, "latency", "Check · running");
  await stand(page, { "phase-0-0": { Done: ["delivery-dev"] }, "phase-0-1": { Done: ["delivery-staging"] }, "phase-0-2": { "To go": ["delivery-prod-eu", "delivery-prod-us"] } });
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "delivery")), ["2.0", "2.0", "1.0", "1.0"].map((version) => image("delivery", version)));
  await fleet.answers("/latency", 200);
  await gate("After everywhere", "close-change", "After · passed");
  await state(page, "Complete");
  assert.deepEqual(clusters.map((cluster) => fleet.image(cluster, "delivery")), clusters.map(() => image("delivery", "2.0")));
  await context.close();
});

test("a phase whose hook fails waits in the inbox, and goes on when that is approved", async () => {
  const { context, page } = await openBoard("delivery");
  await fleet.answers("/open-change", 500);
  fleet.hold("staging", "web");
  fleet.write("web/deployment.yaml", deployment("web", "5.0"));
  release("delivery", "3.0");
  await state(page, "Failed");
  await page.goto(fleet.url);
  await page.getByRole("region", { name: "Needs a look" }).getByRole("link", { name: /delivery/ }).waitFor();
  await page.getByRole("region", { name: "Under way" }).getByRole("link", { name: /web/ }).waitFor();
  await picture(page, "fleet");
  await page.goto(`${fleet.url}/approvals`);
  const stopped = page.getByRole("article", { name: "Phase stopped of delivery" });
  await stopped.getByText(/phase canary stopped: /).waitFor();
  await fleet.answers("/open-change", 200);
  await stopped.getByRole("button", { name: "Approve" }).click();
  await stopped.waitFor({ state: "detached" });
  await page.goto(`${fleet.url}/rollouts/argocd/delivery`);
  await page.getByRole("region", { name: "canary, Failed" }).waitFor();
  await page.getByRole("region", { name: "everywhere, Done" }).waitFor({ timeout: 120_000 });
  fleet.letGo("staging", "web");
  await context.close();
});
