// What a page shows while it has nothing to show, and whether things can be decided without a mouse. Against the mock, whose accounts see
// nothing, everything, or errors.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, signedIn } from "../dev/browser.mjs";
import { startMock } from "../dev/server.mjs";
import { unreadable } from "./contrast.mjs";
import { picture } from "./given.mjs";

let mock;
let browser;
const open = (who) => signedIn(browser, mock.url, who, who);
const set = "/rollouts/argocd/web";
const application = "/applications/argocd/search-ap-east-5";

before(async () => {
  mock = await startMock();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await mock?.stop();
});

test("where there is nothing, each page says so and what to do", async () => {
  const { context, page, problems } = await open("empty");
  for (const [path, title, hint] of [
    ["/", "No ApplicationSets yet", "baton appset create"],
    ["/approvals", "Nothing waits for you", "turn up here by themselves"],
    ["/applications", "No Applications yet", "baton app create"],
    ["/audit", "Nobody has done anything yet", "is listed here"],
    ["/no/such/page", "", ""],
  ]) {
    await page.goto(mock.url + path);
    if (title !== "") await page.getByRole("heading", { name: title }).waitFor();
    await page.locator("main").getByText(hint).first().waitFor();
    assert.deepEqual(await unreadable(page), [], path);
    await picture(page, `empty-${path.split("/")[1] || "fleet"}`);
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("what one may not see reads as what is not there, and nothing is offered", async () => {
  const { context, page } = await open("stranger");
  for (const [path, what] of [[set, "the set argocd/web"], [application, "the Application argocd/search-ap-east-5"], ["/rollouts/argocd/none", "the set argocd/none"], ["/audit", "the audit log"]]) {
    await page.goto(mock.url + path);
    await page.getByRole("alert").getByRole("heading", { name: `You cannot see ${what}` }).waitFor();
    assert.equal(await page.locator("main").getByRole("button").count(), 0, path);
  }
  await context.close();
});

test("an error is told in words, and trying again leads on once it is over", async () => {
  const { context, page } = await open("admin");
  for (const [path, what] of [["/", "The fleet"], [set, "The set argocd/web"], ["/approvals", "The approvals"], ["/applications", "The Applications"], [application, "The Application argocd/search-ap-east-5"], ["/audit", "The audit log"]]) {
    let asked = 0;
    const refuse = (route) => {
      asked += 1;
      return route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "busy", code: 14, message: "the cache is being filled." }) });
    };
    const data = /\/api\/v1\/(?!session|settings)/;
    await page.route(data, refuse);
    await page.goto(mock.url + path);
    const alert = page.getByRole("alert").filter({ hasText: "could not be read" });
    await alert.getByRole("heading", { name: `${what} could not be read` }).waitFor();
    await alert.getByText("The cache is being filled.").waitFor();
    const before = asked;
    await alert.getByRole("button", { name: "Try again" }).click();
    await alert.getByRole("heading").waitFor();
    assert.ok(asked > before, `${path}: it was tried again`);
    await page.unroute(data);
    // What is followed comes back by itself, and may have by now.
    await alert.getByRole("button", { name: "Try again" }).click({ timeout: 5000 }).catch(() => undefined);
    await alert.waitFor({ state: "detached" });
    await page.locator("main h1").first().waitFor();
  }
  await context.close();
});

test("a page that waits for the server says what for, and goes on when it answers", async () => {
  const { context, page } = await open("admin");
  for (const [path, what] of [["/", "the fleet"], [set, "web"], ["/approvals", "what waits for approval"], ["/applications", ""], [application, "search-ap-east-5"], ["/audit", "the audit log"]]) {
    const held = [];
    const data = /\/api\/v1\/(?!session|settings)/;
    await page.route(data, (route) => void held.push(route));
    await page.goto(mock.url + path);
    const waiting = page.getByRole("status").filter({ hasText: `Looking at ${what}` });
    await waiting.waitFor();
    await page.unroute(data);
    await Promise.all(held.map((route) => route.continue().catch(() => undefined)));
    await waiting.waitFor({ state: "detached" });
    await page.locator("main h1").first().waitFor();
  }
  await context.close();
});

/** Goes on with the Tab key until what is reached fits. */
async function tabTo(page, fits, what) {
  for (let step = 0; step < 120; step += 1) {
    await page.keyboard.press("Tab");
    const here = await page.evaluate(() => {
      const element = document.activeElement;
      const shown = getComputedStyle(element);
      return {
        name: element.getAttribute("aria-label") ?? element.textContent.trim(),
        row: element.closest("article")?.getAttribute("aria-label") ?? "",
        ring: shown.outlineStyle !== "none" || shown.boxShadow !== "none",
      };
    });
    if (fits(here)) {
      assert.ok(here.ring, `it shows where one is: ${what}`);
      return;
    }
  }
  assert.fail(`the Tab key does not lead to ${what}`);
}

test("what waits is found, read and approved by keyboard alone", async () => {
  const { context, page } = await open("admin");
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.waitForURL(/approvals/);
  const rows = page.getByRole("article");
  await rows.first().waitFor();
  const labels = await rows.evaluateAll((all) => all.map((row) => [row.getAttribute("aria-label"), row.textContent.includes("grave")]));
  const [ordinary] = labels.find(([label, grave]) => label.startsWith("Prune of ") && !grave) ?? [];
  const [grave] = labels.find(([, isGrave]) => isGrave) ?? [];
  assert.ok(ordinary !== undefined && grave !== undefined, `one of each: ${JSON.stringify(labels)}`);

  await tabTo(page, ({ name, row }) => row === ordinary && name === "Approve", `Approve of ${ordinary}`);
  await page.keyboard.press("Enter");
  await page.getByRole("article", { name: ordinary, exact: true }).waitFor({ state: "detached" });

  await tabTo(page, ({ name, row }) => row === grave && name === "Approve", `Approve of ${grave}`);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.closest("article")?.getAttribute("aria-label")), grave, "the focus is back where it was");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  const word = await dialog.locator("label b").innerText();
  await tabTo(page, ({ name }) => name === "" || name.startsWith("Type"), "the field for the word");
  while (!(await page.evaluate(() => document.activeElement.closest("label")?.textContent.startsWith("Type ")))) await page.keyboard.press("Tab");
  await page.keyboard.type(word);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("article", { name: grave, exact: true }).waitFor({ state: "detached" });
  await context.close();
});
