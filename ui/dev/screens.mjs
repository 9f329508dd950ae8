// Takes pictures of every page from the mock: `npm run screens [folder]`.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openBrowser, signedIn } from "./browser.mjs";
import { startMock } from "./server.mjs";

const folder = process.argv[2] ?? "screens";
const only = process.argv[3] ?? "";
mkdirSync(folder, { recursive: true });

const pages = [
  ["fleet", "/"], ["web", "/rollouts/argocd/web"], ["checkout", "/rollouts/argocd/checkout"], ["edge", "/rollouts/argocd/edge"], ["ledger", "/rollouts/argocd/ledger"], ["atlas", "/rollouts/argocd/atlas"],
  ["approvals", "/approvals"], ["applications", "/applications"], ["application", "/applications/argocd/search-ap-east-5"], ["list", "/applications/argocd/search-ap-east-5?as=list"],
  ["diff", "/applications/argocd/search-ap-east-5?tab=diff"], ["history", "/applications/argocd/search-ap-east-5?tab=history"], ["settings", "/settings"], ["audit", "/audit"], ["hostile", `/rollouts/argocd/${"very-long-name-of-a-set-".repeat(8)}end`],
];

const looks = [
  ["light", { viewport: { width: 1440, height: 900 }, colorScheme: "light" }, pages],
  ["dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }, pages],
  ["360", { viewport: { width: 360, height: 740 }, colorScheme: "light", hasTouch: true, isMobile: true }, pages],
  ["3840", { viewport: { width: 3840, height: 2160 }, colorScheme: "dark" }, pages.slice(0, 7)],
];

const mock = await startMock();
const browser = await openBrowser();
const shoot = (page, name, fullPage = false) => page.screenshot({ path: join(folder, `${name}.png`), fullPage });

async function openPage(page, path) {
  await page.goto(mock.url + path);
  await page.locator("main h1, main .standing h2").first().waitFor();
  await page.waitForLoadState("load");
  await page.locator(".standing[role=status]").waitFor({ state: "detached" });
}

for (const [look, options, list] of looks) {
  if (only !== "" && !look.includes(only) && !list.some(([name]) => `${look}-${name}`.includes(only))) continue;
  const { context, page, problems } = await signedIn(browser, mock.url, "admin", "admin", options);
  for (const [name, path] of list) {
    if (only !== "" && !`${look}-${name}`.includes(only)) continue;
    await openPage(page, path);
    await shoot(page, `${look}-${name}`);
  }
  if (problems.length > 0) console.log(look, problems);
  await context.close();
}

if (only === "" || only === "more") {
  for (const user of ["empty", "broken", "viewer"]) {
    const { context, page } = await signedIn(browser, mock.url, user, user);
    for (const [name, path] of pages.filter(([name]) => ["fleet", "web", "checkout", "approvals", "applications", "application", "settings", "audit"].includes(name))) {
      await openPage(page, path);
      await shoot(page, `${user}-${name}`);
    }
    await context.close();
  }
  const { context, page } = await signedIn(browser, mock.url, "admin", "admin");
  await openPage(page, "/rollouts/argocd/checkout");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("Plan of the set").waitFor();
  await shoot(page, "dialog-retry");
  await openPage(page, "/approvals");
  await page.getByRole("article", { name: "Deletion of legacy-billing" }).getByRole("button", { name: "Approve" }).click();
  await shoot(page, "dialog-approve");
  await openPage(page, "/applications/argocd/search-ap-east-5");
  await page.getByRole("button", { name: "Sync", exact: true }).click();
  await shoot(page, "dialog-sync");
  await context.close();
  for (const colorScheme of ["light", "dark"]) {
    const out = await browser.newPage({ colorScheme, viewport: { width: 1440, height: 900 } });
    await out.goto(`${mock.url}/login`);
    await out.getByLabel("Password").waitFor();
    await shoot(out, `login-${colorScheme}`);
    await out.close();
  }
}

await browser.close();
await mock.stop();
