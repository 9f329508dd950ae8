// In which one standing an Application is listed, and what the filters ask for.

import type { Application } from "../api/shapes";
import type { GlyphName } from "../parts/Glyph";
import type { Tone } from "../parts/tone";

export type Standing = "degraded" | "leaving" | "syncing" | "outofsync" | "well" | "other";

export const standings: { value: Standing; label: string; tone: Tone; glyph: GlyphName }[] = [
  { value: "degraded", label: "Not healthy", tone: "bad", glyph: "failed" },
  { value: "leaving", label: "Leaving", tone: "leaving", glyph: "leaving" },
  { value: "syncing", label: "Under way", tone: "active", glyph: "running" },
  { value: "outofsync", label: "Out of sync", tone: "person", glyph: "retry" },
  { value: "well", label: "Well", tone: "good", glyph: "done" },
  { value: "other", label: "Unknown", tone: "calm", glyph: "unknown" },
];

/** The gravest that holds. */
export function standingOf(app: Application): Standing {
  const health = app.status?.health?.status;
  if (app.metadata.deletionTimestamp !== undefined) return "leaving";
  if (health === "Degraded" || health === "Missing") return "degraded";
  if (health === "Progressing" || app.status?.operationState?.phase === "Running") return "syncing";
  if (app.status?.sync?.status === "OutOfSync") return "outofsync";
  return health === "Healthy" || health === "Suspended" ? "well" : "other";
}

/** Every word must be found somewhere; `key=value` is a label. */
export function askedFor(app: Application, text: string, standing: string): boolean {
  if (standing !== "" && standingOf(app) !== standing) return false;
  const { metadata, spec } = app;
  const places = [metadata.name, metadata.namespace, spec.project, spec.destination.name ?? "", spec.destination.server ?? "", ...Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)].map((place) => place.toLowerCase());
  return text.toLowerCase().split(/\s+/).filter((word) => word !== "").every((word) => places.some((place) => place.includes(word)));
}
