// What the board with 1,000 Applications costs a browser: `npm run measure`. Prints numbers, judges none.

import { openBrowser, signedIn } from "./browser.mjs";
import { startMock } from "./server.mjs";

const rounds = 5;
const seconds = 15;
const mock = await startMock();
const browser = await openBrowser();
const middle = (numbers) => [...numbers].sort((left, right) => left - right)[Math.floor(numbers.length / 2)];

const paints = [];
const boards = [];
for (let round = 0; round < rounds; round += 1) {
  const { context, page } = await signedIn(browser, mock.url, "admin", "admin");
  const cookies = await context.cookies();
  await context.close();
  // A browser that has seen nothing yet.
  const fresh = await browser.newContext({ viewport: { width: 1920, height: 1080 } });
  await fresh.addCookies(cookies);
  const board = await fresh.newPage();
  await board.addInitScript(() => {
    const look = () => {
      if (document.querySelectorAll(".square").length >= 990) requestAnimationFrame(() => (window.boardShown = performance.now()));
      else requestAnimationFrame(look);
    };
    look();
  });
  await board.goto(`${mock.url}/rollouts/argocd/edge`);
  await board.waitForFunction(() => window.boardShown !== undefined);
  boards.push(await board.evaluate(() => window.boardShown));
  paints.push(await board.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
  if (round === rounds - 1) {
    const cost = await fresh.newCDPSession(board);
    await cost.send("Performance.enable");
    const spent = async () => Object.fromEntries((await cost.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
    const before = await spent();
    const frames = await board.evaluate(
      (length) =>
        new Promise((resolve) => {
          const deltas = [];
          const long = [];
          new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
          let before = performance.now();
          const end = before + length * 1000;
          const tick = (now) => {
            deltas.push(now - before);
            before = now;
            if (now < end) requestAnimationFrame(tick);
            else resolve({ deltas, long, nodes: document.querySelectorAll("*").length, heap: performance.memory?.usedJSHeapSize });
          };
          requestAnimationFrame(tick);
        }),
      seconds,
    );
    const sorted = frames.deltas.sort((left, right) => left - right);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1);
    console.log(`frames over ${seconds} s of events: ${sorted.length}, median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms; long tasks: ${frames.long.length}${frames.long.length > 0 ? `, longest ${Math.max(...frames.long).toFixed(0)} ms` : ""}`);
    const after = await spent();
    const share = (name) => `${(((after[name] - before[name]) / seconds) * 100).toFixed(1)} %`;
    console.log(`of the main thread's time: script ${share("ScriptDuration")}, style ${share("RecalcStyleDuration")}, layout ${share("LayoutDuration")}, all ${share("TaskDuration")}`);
    console.log(`elements: ${frames.nodes}, heap ${(frames.heap / 1048576).toFixed(1)} MiB`);
  }
  await fresh.close();
}
console.log(`first contentful paint: median ${middle(paints).toFixed(0)} ms; board with 1,000 Applications drawn: median ${middle(boards).toFixed(0)} ms of ${rounds} cold loads`);

await browser.close();
await mock.stop();
