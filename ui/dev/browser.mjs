// One way to start the browser, for tests and for pictures.

import { chromium } from "playwright-core";

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** The installed browser, headless, with a profile of its own that goes away with it. */
export function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: flags });
}

/** A page that is signed in. Whatever a page asks of another host, or the policy forbids, is noted in `problems`. */
export async function signedIn(browser, url, user, password, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const problems = watch(page, url);
  await page.goto(`${url}/login`);
  await page.getByLabel("Name", { exact: true }).fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return { context, page, problems };
}

export function watch(page, url) {
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) problems.push(`policy: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) problems.push(`outside: ${request.url()}`);
  });
  return problems;
}
