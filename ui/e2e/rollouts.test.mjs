// Whether a person can watch a rollout, hold it, and let deletions go; and whether one who may not, cannot.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, signedIn } from "../dev/browser.mjs";
import { given, picture } from "./given.mjs";

let world;
let browser;
const open = (who, options) => signedIn(browser, world.url, who.user, who.password, options);
const board = () => `${world.url}/rollouts/${world.rollout}`;

before(async () => {
  world = await given();
  browser = await openBrowser();
});

after(async () => {
  await browser.close();
  await world.stop();
});

test("a rollout moves across the board while one looks", async () => {
  const { context, page, problems } = await open(world.admin, { reducedMotion: "no-preference" });
  await page.goto(board());
  const main = page.getByRole("progressbar", { name: /^Progress of / }).first();
  await main.waitFor();
  // Where each card stands, lane and group, whatever the states are called.
  const places = () => page.locator(".board").evaluate((box) => [...box.querySelectorAll("[data-flip]")].map((card) => `${card.dataset.flip} ${card.closest("section")?.getAttribute("aria-label") ?? ""}`).join("\n"));
  const before_ = await places();
  world.begin();
  await page.waitForFunction(
    (known) => {
      const box = document.querySelector(".board");
      const now = [...box.querySelectorAll("[data-flip]")].map((card) => `${card.dataset.flip} ${card.closest("section")?.getAttribute("aria-label") ?? ""}`).join("\n");
      return now !== known;
    },
    before_,
    { timeout: 300_000 },
  );
  await page.getByRole("region", { name: "Under way" }).or(page.getByRole("region", { name: "Done" })).first().waitFor();
  await picture(page, "board-moving");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a rollout is paused and resumed, with what that means said first", async () => {
  const { context, page } = await open(world.admin);
  await page.goto(board());
  await page.getByRole("button", { name: "Pause" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Nothing more is started").waitFor();
  await dialog.getByText(/baton appset pause /).waitFor();
  await dialog.getByText(/Plan of the set/).waitFor();
  await dialog.getByLabel("Reason, for the audit log").fill("looking at the error rate");
  await picture(page, "pause");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.locator("header .chip", { hasText: "Paused" }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await page.locator("header .chip", { hasText: "Paused" }).waitFor({ state: "detached" });
  await page.goto(`${world.url}/audit`);
  await page.getByText("looking at the error rate").first().waitFor();
  await context.close();
});

test("who may only look sees no buttons, is told why, and is refused by the server too", async () => {
  const { context, page } = await open(world.viewer);
  await page.goto(board());
  await page.getByText("Why are there no buttons?").click();
  await page.getByText(/needs applicationsets, action\/argoproj.io\/ApplicationSet\/pause/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
  await picture(page, "denied");
  const [namespace, name] = world.rollout.split("/");
  const status = await page.evaluate(
    async ([set, where]) => (await fetch(`/api/v1/applicationsets/${set}/actions?appsetNamespace=${where}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ action: "pause" }) })).status,
    [name, namespace],
  );
  assert.equal(status, 403);
  await page.goto(`${world.url}/approvals`);
  await page.locator("main h1, main .standing h2").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Approve|Reject/ }).count(), 0);
  await context.close();
});

test("a deletion that waits is approved with one click, where it is an ordinary one", async () => {
  world.needApproval();
  const { context, page } = await open(world.admin);
  await page.goto(`${world.url}/approvals`);
  const prune = page.getByRole("article", { name: /^Prune of / }).first();
  await prune.waitFor();
  await picture(page, "approvals");
  const label = await prune.getAttribute("aria-label");
  const badge = page.getByRole("navigation", { name: "Pages" }).locator(".badge");
  const number = Number(await badge.textContent());
  await prune.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("article", { name: label, exact: true }).waitFor({ state: "detached" });
  assert.equal(Number((await badge.count()) === 0 ? 0 : await badge.textContent()), number - 1);
  world.gone();
  await context.close();
});

test("each resource that waits is marked in the graph, and has its own button", async (t) => {
  const { context, page } = await open(world.admin);
  await page.goto(`${world.url}/approvals`);
  const prune = page.getByRole("article", { name: /^Prune of / }).first();
  await page.locator("main h1, main .standing h2").first().waitFor();
  if ((await prune.count()) === 0) return t.diagnostic("nothing is to be pruned any more");
  await prune.getByRole("link").first().click();
  const buttons = page.getByRole("button", { name: /^Approve Deletion of / });
  await buttons.first().waitFor();
  const number = await buttons.count();
  await picture(page, "application");
  await buttons.first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/baton app actions run /).waitFor();
  await dialog.getByRole("button", { name: "Approve Deletion" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.waitForFunction((many) => document.querySelectorAll(".node-approve").length < many, number);
  await context.close();
});

test("a rejection needs a reason", async (t) => {
  const { context, page } = await open(world.admin);
  await page.goto(`${world.url}/approvals`);
  await page.locator("main h1, main .standing h2").first().waitFor();
  const prune = page.getByRole("article", { name: /^Prune of / }).last();
  if ((await prune.count()) === 0) return t.diagnostic("nothing is to be pruned any more");
  const label = await prune.getAttribute("aria-label");
  await prune.getByRole("button", { name: "Reject" }).click();
  const dialog = page.getByRole("dialog");
  assert.ok(await dialog.getByRole("button", { name: "Reject" }).isDisabled());
  await dialog.getByLabel(/^Reason/).fill("the indexer is still in use");
  await dialog.getByRole("button", { name: "Reject" }).click();
  await page.getByRole("article", { name: label, exact: true }).waitFor({ state: "detached" });
  await context.close();
});

test("all that waits is approved at once, and what is grave by typing", async () => {
  const { context, page } = await open(world.admin);
  await page.goto(`${world.url}/approvals`);
  await page.getByRole("checkbox", { name: "Choose all" }).check();
  await page.getByRole("button", { name: "Approve chosen" }).click();
  const dialog = page.getByRole("dialog");
  const confirm = dialog.getByRole("button", { name: "Approve", exact: true });
  const typing = dialog.getByLabel(/^Type /);
  if ((await typing.count()) > 0) {
    assert.ok(await confirm.isDisabled());
    await typing.fill("something else");
    assert.ok(await confirm.isDisabled());
    await typing.fill(await dialog.locator("label b").innerText());
  }
  await picture(page, "approve-all");
  await confirm.click();
  await page.getByText("Nothing waits for you").waitFor();
  await context.close();
});
