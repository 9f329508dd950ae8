// Whether what waits for a person waits, goes when it is approved and stays when it is not; and whether one who may only look can do no more than that.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, signedIn } from "../../dev/browser.mjs";
import { Fleet } from "../../dev/fleet.mjs";
import { picture } from "../given.mjs";

const fleet = new Fleet(process.env.BATON_E2E_FLEET);
const prunes = ["catalog", "ledger", "reports", "search"];
let browser;

const open = (who, options) => signedIn(browser, fleet.url, who.user, who.password, options);
const inbox = async (who) => (await fleet.call(who, "GET", "/api/v1/approvals")).body.items;
const item = (items, kind, name) => items.find((one) => one.kind === kind && one.object.name === name);
const setting = (name) => fleet.isGone("dev", "configmap", name, "shop");
const gone = (...names) => fleet.until(`${names.join(" and ")} are gone`, () => names.every(setting));
const there = (...names) => assert.deepEqual(names.filter(setting), [], "nothing of this may be gone");

before(async () => {
  browser = await openBrowser();
  for (const name of prunes) for (const file of ["goes.yaml", "too.yaml"]) fleet.remove(`${name}/${file}`);
  fleet.remove("search/data.yaml");
  // The sets follow the same branch: they are through with it before anything else begins.
  await fleet.bring(fleet.commit("Less"));
  for (const name of prunes) {
    const { status, body } = await fleet.call(fleet.admin, "POST", `/api/v1/applications/${name}/sync`, { prune: true });
    assert.equal(status, 200, JSON.stringify(body));
  }
  fleet.control("delete", "application", "legacy", "-n", "argocd", "--wait=false");
  await fleet.until("all of it waits", async () => {
    const items = await inbox(fleet.admin);
    return prunes.every((name) => item(items, "prune", name)?.resources.length >= 2) && item(items, "delete", "legacy") !== undefined;
  });
});

after(() => browser?.close());

test("who may only look sees what waits without a button, is told why, and is refused by the server", async () => {
  const { context, page } = await open(fleet.viewer);
  await page.goto(`${fleet.url}/approvals`);
  for (const label of [...prunes.map((name) => `Prune of ${name}`), "Deletion of legacy"]) {
    const row = page.getByRole("article", { name: label, exact: true });
    await row.getByText(/permission denied|needs /).waitFor();
    assert.equal(await row.getByRole("button").count() + (await row.getByRole("checkbox").count()), 0, label);
  }
  assert.equal(await page.getByRole("button", { name: /Approve|Reject/ }).count(), 0);
  await picture(page, "denied");
  await page.goto(`${fleet.url}/applications/argocd/catalog`);
  await page.locator(".node-denied").nth(1).waitFor();
  assert.equal(await page.locator(".node-waits").count(), 2);
  assert.equal(await page.getByRole("button", { name: /Approve|Sync/ }).count(), 0);
  await page.getByText("Syncing needs the right applications, sync").waitFor();
  await page.goto(`${fleet.url}/rollouts/argocd/web`);
  await page.getByText("Why are there no buttons?").click();
  await page.getByText(/needs applicationsets, action\/argoproj.io\/ApplicationSet\/pause/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);

  const { id, setHash, allowed, whyNot } = item(await inbox(fleet.viewer), "prune", "catalog");
  assert.equal(allowed, false);
  assert.notEqual(whyNot ?? "", "");
  const application = (await fleet.call(fleet.admin, "GET", "/api/v1/applications/catalog")).body;
  const approved = { metadata: { annotations: { "argocd.argoproj.io/deletion-approved": new Date().toISOString() } } };
  const annotated = { ...application, metadata: { ...application.metadata, annotations: { ...application.metadata.annotations, ...approved.metadata.annotations } } };
  const resource = { group: "", version: "v1", kind: "ConfigMap", namespace: "shop", resourceName: "catalog-goes" };
  for (const [method, path, body] of [
    ["POST", "/api/v1/approvals/approve", { items: [{ id, setHash }] }],
    ["POST", "/api/v1/approvals/reject", { items: [{ id, setHash }], reason: "no" }],
    ["POST", "/api/v1/applications/catalog/resource/actions/v2", { ...resource, action: "approve-deletion" }],
    ["PATCH", "/api/v1/applications/catalog", { patch: JSON.stringify(approved), patchType: "merge" }],
    ["PUT", "/api/v1/applications/catalog", annotated],
    ["POST", "/api/v1/applicationsets/web/actions", { action: "pause" }],
    ["POST", "/api/v1/applications/catalog/sync", {}],
  ]) {
    // By the page itself, with the cookie of its session.
    const status = await page.evaluate(async ([how, where, what]) => (await fetch(where, { method: how, headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) })).status, [method, path, body]);
    assert.equal(status, 403, `${method} ${path}`);
  }
  const after_ = item(await inbox(fleet.admin), "prune", "catalog");
  assert.deepEqual([after_.setHash, after_.resources.map((one) => one.approved)], [setHash, [false, false]]);
  there("catalog-goes", "catalog-too", "catalog-stays");
  await context.close();
});

test("a prune that waits is approved with one click, and everything it named is gone", async () => {
  const { context, page } = await open(fleet.admin);
  await page.goto(`${fleet.url}/approvals`);
  const row = page.getByRole("article", { name: "Prune of catalog", exact: true });
  await row.waitFor();
  await picture(page, "approvals");
  const badge = page.getByRole("navigation", { name: "Pages" }).locator(".badge");
  const number = Number(await badge.textContent());
  there("catalog-goes", "catalog-too");
  await row.getByRole("button", { name: "Approve" }).click();
  await row.waitFor({ state: "detached" });
  await page.waitForFunction((left) => document.querySelector(".badge")?.textContent === String(left), number - 1);
  await gone("catalog-goes", "catalog-too");
  there("catalog-stays", "ledger-goes", "ledger-too", "reports-goes", "search-goes");
  await context.close();
});

test("each resource that waits has its own button in the graph, and nothing goes before the last is approved", async () => {
  const { context, page } = await open(fleet.admin);
  await page.goto(`${fleet.url}/applications/argocd/ledger`);
  const approve = async (name) => {
    await page.getByRole("button", { name: `Approve Deletion of ${name}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/baton app actions run ledger approve-deletion/).waitFor();
    await dialog.getByRole("button", { name: "Approve Deletion" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await page.getByRole("button", { name: "Approve Deletion of ledger-too" }).waitFor();
  await picture(page, "application");
  await approve("ledger-goes");
  await page.getByRole("button", { name: "Approve Deletion of ledger-goes" }).waitFor({ state: "detached" });
  await page.getByText("One resource waits").waitFor();
  there("ledger-goes", "ledger-too");
  await approve("ledger-too");
  await gone("ledger-goes", "ledger-too");
  there("ledger-stays");
  await page.locator(".node-waits").first().waitFor({ state: "detached" });
  await context.close();
});

test("a rejection needs a reason; nothing is deleted, and the sync ends with it", async () => {
  const { context, page } = await open(fleet.admin);
  await page.goto(`${fleet.url}/approvals`);
  const row = page.getByRole("article", { name: "Prune of reports", exact: true });
  await row.getByRole("button", { name: "Reject" }).click();
  const dialog = page.getByRole("dialog");
  assert.ok(await dialog.getByRole("button", { name: "Reject" }).isDisabled());
  await dialog.getByLabel(/^Reason/).fill("the indexer is still in use");
  await dialog.getByRole("button", { name: "Reject" }).click();
  await row.waitFor({ state: "detached" });
  await fleet.until("the sync has ended", () => fleet.control("get", "application", "reports", "-n", "argocd", "-o", "jsonpath={.status.operationState.phase}") === "Failed");
  there("reports-goes", "reports-too");
  await page.goto(`${fleet.url}/audit`);
  await page.getByText("the indexer is still in use").first().waitFor();
  await picture(page, "audit");
  await context.close();
});

test("all that waits is approved at once, what is grave by typing, and all of it is gone", async () => {
  const { context, page } = await open(fleet.admin);
  await page.goto(`${fleet.url}/approvals`);
  await page.getByRole("article", { name: "Prune of search", exact: true }).waitFor();
  await page.getByRole("checkbox", { name: "Choose all" }).check();
  await page.getByRole("button", { name: "Approve chosen" }).click();
  const dialog = page.getByRole("dialog");
  const confirm = dialog.getByRole("button", { name: "Approve", exact: true });
  assert.ok(await confirm.isDisabled());
  await dialog.getByLabel(/^Type /).fill("something else");
  assert.ok(await confirm.isDisabled());
  await dialog.getByLabel(/^Type /).fill("approve 2");
  await picture(page, "approve-all");
  there("search-goes", "search-too", "legacy-index");
  await confirm.click();
  await page.getByText("Nothing waits for you").waitFor();
  await gone("search-goes", "search-too", "legacy-index");
  await fleet.until("the volume is gone", () => fleet.isGone("dev", "persistentvolumeclaim", "search-data", "shop"));
  await fleet.until("legacy is gone", () => fleet.isGone(undefined, "application", "legacy", "argocd"));
  there("search-stays", "reports-goes", "reports-too");
  await context.close();
});
