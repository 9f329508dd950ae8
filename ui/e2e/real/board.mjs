// What a test reads off a board.

import assert from "node:assert/strict";

/** Gives the page a way to tell where each card stands, as `{"step-1": {"Under way": ["web-dev"]}}`. */
export const readable = (page) =>
  page.addInitScript(() => {
    window.readBoard = () => {
      const lanes = {};
      for (const lane of document.querySelectorAll("[data-lane]")) {
        const groups = (lanes[lane.dataset.lane] = {});
        for (const group of lane.querySelectorAll(".cards > section")) {
          groups[group.getAttribute("aria-label")] = [...group.querySelectorAll("li[data-flip]")].map((card) => card.dataset.flip.split("/")[1]);
        }
      }
      return lanes;
    };
  });

/** Waits until the cards stand exactly so; what is seen instead is told when time is up. */
export async function stand(page, wanted) {
  try {
    await page.waitForFunction((text) => JSON.stringify(window.readBoard()) === text, JSON.stringify(wanted), { timeout: 120_000 });
  } catch (error) {
    if (error.name !== "TimeoutError") throw error;
    assert.deepEqual(await page.evaluate(() => window.readBoard()), wanted);
  }
}

/** Notes every state that the board goes through from now on; nothing that is drawn is missed. */
export async function record(page) {
  await page.evaluate(() => {
    window.seen = [window.readBoard()];
    new MutationObserver(() => window.seen.push(window.readBoard())).observe(document.querySelector(".board"), { subtree: true, childList: true, attributes: true });
  });
  return () => page.evaluate(() => window.seen);
}

/** No lane had anything under way before all lanes to its left were done. */
export function inOrder(seen) {
  let moved = 0;
  for (const lanes of seen) {
    const all = Object.values(lanes);
    all.forEach((lane, index) => {
      if (lane["Under way"] === undefined) return;
      moved += 1;
      for (const before of all.slice(0, index)) assert.deepEqual(Object.keys(before), ["Done"], `under way before its turn: ${JSON.stringify(lanes)}`);
    });
  }
  assert.ok(moved > 0, "nothing was ever seen under way");
}
