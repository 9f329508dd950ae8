// Whether every page can be read and used: by keyboard, on a small screen, in the dark, under a strict policy.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser, signedIn, watch } from "../dev/browser.mjs";
import { given, picture } from "./given.mjs";
import { unreadable } from "./contrast.mjs";
import { wireTo } from "./wire.mjs";

let world;
let browser;
const hostile = `argocd/${"very-long-name-of-a-set-".repeat(8)}end`;
let anApplication = "/applications";
const pages = () => [anApplication, `${anApplication}?as=list`, `${anApplication}?tab=diff`, ...(world.large === undefined ? [] : [`/rollouts/${world.large}`]), ...(world.mocked ? [`/rollouts/${hostile}`, "/rollouts/argocd/checkout", "/rollouts/argocd/atlas"] : []), "/", `/rollouts/${world.rollout}`, "/approvals", "/applications", "/settings", "/audit", "/no/such/page"];

before(async () => {
  world = await given();
  browser = await openBrowser();
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password);
  await page.goto(`${world.url}/applications`);
  anApplication = (await page.getByRole("listitem").first().getByRole("link").getAttribute("href")) ?? anApplication;
  await context.close();
});

after(async () => {
  await browser.close();
  await world.stop();
});

const settled = async (page) => {
  await page.locator("main").waitFor();
  await page.locator(".standing[role=status]").waitFor({ state: "detached" });
};

test("a wrong password is refused without saying what was wrong, the right one lets in", async () => {
  const page = await browser.newPage();
  const problems = watch(page, world.url);
  await page.goto(world.url);
  await page.getByLabel("Name", { exact: true }).fill(world.admin.user);
  await page.getByLabel("Password").fill("certainly not this one");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Name or password is wrong.").waitFor();
  await picture(page, "login");
  await page.getByLabel("Password").fill(world.admin.password);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  assert.equal(await page.evaluate(() => document.cookie), "", "no script can read the session");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Password").waitFor();
  assert.deepEqual(problems, []);
  await page.close();
});

test("no page asks another host for anything or breaks the policy", async () => {
  const { context, page, problems } = await signedIn(browser, world.url, world.admin.user, world.admin.password);
  for (const path of pages()) {
    await page.goto(world.url + path);
    await settled(page);
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("what is written into repositories is shown as text, and leads nowhere", async (t) => {
  if (!world.mocked) return t.diagnostic("only the mock has such a set");
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password);
  let spoke = false;
  page.on("dialog", (dialog) => {
    spoke = true;
    void dialog.dismiss();
  });
  await page.goto(`${world.url}/rollouts/${hostile}`);
  await page.getByText("<b>Step</b> 1", { exact: true }).waitFor();
  assert.equal(await page.locator("main img, main a[href^='javascript']").count(), 0);
  assert.equal(spoke, false);
  await context.close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`all text can be read in ${colorScheme} colours`, async () => {
    const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password, { colorScheme });
    for (const path of pages()) {
      await page.goto(world.url + path);
      await settled(page);
      assert.deepEqual(await unreadable(page), [], path);
      await picture(page, `${colorScheme}-${path.split("/")[1] || "fleet"}`);
    }
    await context.close();
  });
}

test("colours follow the system until a person chooses, and the choice stays", async () => {
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password, { colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  assert.notEqual(light, dark);
  await page.getByRole("button", { name: /Colours as the system/ }).click();
  assert.equal(await ground(), light);
  await page.reload();
  await settled(page);
  assert.equal(await ground(), light);
  await page.getByRole("button", { name: /Light colours/ }).click();
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await ground(), dark);
  await context.close();
});

test("at 360 pixels nothing sticks out, and pages are chosen at the bottom", async () => {
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  for (const path of pages()) {
    await page.goto(world.url + path);
    await settled(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, path);
    await picture(page, `360-${path.split("/")[1] || "fleet"}`);
  }
  const bar = await page.getByRole("navigation", { name: "Pages" }).boundingBox();
  assert.ok(bar !== null && bar.y > 600, "the bar is at the bottom");
  await context.close();
});

test("the keyboard finds the search, goes to pages, and closes what is open", async () => {
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password);
  await page.goto(`${world.url}/rollouts/${world.rollout}`);
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type("nothing is called so");
  await page.waitForURL(/q=nothing/);
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => !url.search.includes("q="));
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.waitForURL(/approvals/);
  await context.close();
});

test("cards and squares are one stop of the Tab key each, and arrows go through them", async (t) => {
  const { context, page } = await signedIn(browser, world.url, world.admin.user, world.admin.password);
  await page.goto(`${world.url}/rollouts/${world.rollout}`);
  await settled(page);
  const stops = await page.locator("[data-cards]").evaluateAll((lanes) => lanes.map((lane) => lane.querySelectorAll("button[tabindex='0']").length));
  assert.ok(stops.length > 0 && stops.every((number) => number === 1), `one stop a lane: ${stops}`);
  if (world.large === undefined) return t.diagnostic("no large set is named");
  await page.goto(`${world.url}/rollouts/${world.large}`);
  const squares = page.getByRole("listbox").first();
  await squares.focus();
  const active = () => squares.getAttribute("aria-activedescendant");
  const first = await active();
  await page.keyboard.press("ArrowRight");
  const second = await active();
  assert.notEqual(first, second);
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await active(), second);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.ok(await squares.evaluate((box) => box === document.activeElement), "the focus is back where it was");
  await context.close();
});

test("a line that is cut is told of, and taken up again", async (t) => {
  const wire = await wireTo(world.url);
  t.after(() => wire.close());
  const { context, page } = await signedIn(browser, wire.url, world.admin.user, world.admin.password);
  await page.getByText("Live", { exact: true }).waitFor();
  wire.cut();
  await page.getByText("The server has gone quiet").waitFor();
  await picture(page, "stale");
  wire.mend();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByText("The server has gone quiet").waitFor({ state: "detached" });
  await context.close();
});

test("a line that is open and silent is noticed", async (t) => {
  const wire = await wireTo(world.url);
  t.after(() => wire.close());
  const { context, page } = await signedIn(browser, wire.url, world.admin.user, world.admin.password);
  await page.clock.install();
  await page.goto(`${wire.url}/approvals`);
  await page.getByText("Live", { exact: true }).waitFor();
  wire.hold();
  await page.clock.fastForward(40_000);
  await page.getByText("The server has gone quiet").waitFor();
  await context.close();
});
