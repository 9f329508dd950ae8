// A wire to the server that can be cut and held.

import { connect, createServer } from "node:net";

export function wireTo(url) {
  const { hostname, port } = new URL(url);
  const open = new Set();
  const waiting = [];
  let cut = false;
  let held = false;
  const server = createServer((near) => {
    if (cut) return near.destroy();
    if (held) return waiting.push(near.on("error", () => undefined));
    const far = connect(Number(port), hostname);
    const pair = [near, far];
    open.add(pair);
    const end = () => {
      near.destroy();
      far.destroy();
      open.delete(pair);
    };
    near.pipe(far).pipe(near);
    for (const side of pair) side.on("error", end).on("close", end);
    return undefined;
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve({
        url: `http://127.0.0.1:${address.port}`,
        /** What is under way ends, and nothing new gets through. */
        cut: () => {
          cut = true;
          for (const [near] of [...open]) near.destroy();
        },
        mend: () => {
          cut = false;
        },
        /** Nothing more arrives, of what is under way and of what is new, and nobody is told. */
        hold: () => {
          held = true;
          for (const [, far] of open) far.unpipe().pause();
        },
        close: () => {
          for (const [near] of [...open]) near.destroy();
          for (const near of waiting) near.destroy();
          server.close();
        },
      });
    });
  });
}
