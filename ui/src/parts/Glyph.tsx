// Signs of our own. Each state has a shape, so that nothing hangs on colour alone.

const paths = {
  // states
  done: "M3.2 8.4 6.6 11.8 12.8 4.6",
  running: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5",
  waiting: "M8 2.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 8 2.8Z",
  pending: "M8 2.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 8 2.8ZM8 5.4V8l1.8 1.6",
  failed: "m4.2 4.2 7.6 7.6m0-7.6-7.6 7.6",
  paused: "M5.6 3.6v8.8m4.8-8.8v8.8",
  person: "M8 2.4 14 13H2L8 2.4Zm0 4v3m0 1.9v.1",
  leaving: "M3 4.6h10M6.4 4.4V2.8h3.2v1.6M4.4 4.6l.7 8.6h5.8l.7-8.6",
  back: "M5.8 3.4 2.6 6.6l3.2 3.2M2.8 6.6h6.4a4 4 0 0 1 0 8H6.4",
  aborted: "M4.4 4.4h7.2v7.2H4.4Z",
  skipped: "m3 4 4.4 4L3 12Zm6 0 4.4 4L9 12Z",
  unknown: "M5.6 6a2.4 2.4 0 1 1 3.4 2.2c-.7.3-1 .8-1 1.6m0 2.2v.1",
  idle: "M3.6 8h8.8",
  // things
  approve: "M2.6 8.6 6 12l7.4-8",
  search: "M7 2.6a4.4 4.4 0 1 0 0 8.8 4.4 4.4 0 0 0 0-8.8ZM10.4 10.4l3.2 3.2",
  close: "m4 4 8 8m0-8-8 8",
  play: "M4.8 3.2v9.6l8-4.8Z",
  retry: "M12.8 8A4.8 4.8 0 1 1 11 4.3l1.4 1.2m.3-3v3.2H9.5",
  advance: "M3 3.6 8 8l-5 4.4Zm5.4 0 5 4.4-5 4.4Z",
  tree: "M2.4 5.4h4v5.2h-4ZM9.8 2.2h3.8v3.6H9.8Zm0 8h3.8v3.6H9.8ZM6.4 8h1.8m1.6-4H8.2v8h1.6",
  list: "M5.4 4.2h8M5.4 8h8m-8 3.8h8M2.6 4.2h.1M2.6 8h.1m-.1 3.8h.1",
  copy: "M5.6 5.6h7.2v7.6H5.6ZM10 5.4V2.8H3v7.6h2.4",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.6v1.2m0 10.4v1.2M1.6 8h1.2m10.4 0h1.2M3.5 3.5l.8.8m7.4 7.4.8.8m0-9-.8.8m-7.4 7.4-.8.8",
  moon: "M13 9.6A5.4 5.4 0 0 1 6.4 3a5.4 5.4 0 1 0 6.6 6.6Z",
  auto: "M8 2.6a5.4 5.4 0 1 0 0 10.8ZM8 2.6a5.4 5.4 0 0 1 0 10.8",
  fleet: "M2.4 4.2h11.2M2.4 8h7.2m-7.2 3.8h9.4",
  apps: "M2.8 2.8h4.4v4.4H2.8Zm6 0h4.4v4.4H8.8Zm-6 6h4.4v4.4H2.8Zm6 0h4.4v4.4H8.8Z",
  inbox: "M2.6 9.2h3.2l1 1.8h2.4l1-1.8h3.2M4.4 3.2h7.2l1.8 6v3.6H2.6V9.2Z",
  settings: "M2.4 5h5.4m3.6 0h2.2M2.4 11h2.2m3.6 0h5.4M9.6 3.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6ZM6.4 9.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6Z",
  audit: "M4 2.4h8v11.2H4Zm2.2 3h3.6M6.2 8h3.6m-3.6 2.6h2",
  chevron: "m6 3.6 4.4 4.4L6 12.4",
  door: "M9.4 2.6H3.6v10.8h5.8M7 8h6.6m-2.2-2.4L13.8 8l-2.4 2.4",
  lock: "M4 7.4h8v6H4Zm1.8 0V5.2a2.2 2.2 0 0 1 4.4 0v2.2",
} as const;

export type GlyphName = keyof typeof paths;

/** A sign beside text is silent; one that stands alone gets a `label`. */
export function Glyph({ name, label, className = "" }: { name: GlyphName; label?: string; className?: string }) {
  return (
    <svg
      className={`glyph ${className}`}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
    >
      <path d={paths[name]} />
    </svg>
  );
}

/** The mark: one runner's half of the baton, and the next one's. */
export function Mark({ className = "" }: { className?: string }) {
  return (
    <svg className={`mark ${className}`} viewBox="0 0 40 24" fill="none" aria-hidden>
      <path className="mark-from" d="M6 18 15.5 12.9" strokeWidth="7" strokeLinecap="round" />
      <path className="mark-to" d="M24.5 11.1 34 6" strokeWidth="7" strokeLinecap="round" />
    </svg>
  );
}
