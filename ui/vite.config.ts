import { defineConfig } from "vitest/config";

// The mock of `npm run mock`, or a `baton server`, that `npm run dev` fetches data from.
const api = process.env.BATON_UI_API ?? "http://127.0.0.1:23100";

export default defineConfig({
  // Relative addresses would break on deep links: the server answers every page with the same document.
  base: "/",
  build: {
    target: "es2022",
    // Colours are written once for light and dark, with light-dark().
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    // A data: URL in a style sheet would need `img-src data:` in the policy of the page.
    assetsInlineLimit: 0,
    // The polyfill is not needed by the browsers named above.
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  // The tests in a browser have a runner of their own: `npm run e2e`.
  test: { include: ["test/*.test.ts"] },
  server: { host: "127.0.0.1", port: 23101, strictPort: true, proxy: { "/api": api, "/auth": api } },
});
