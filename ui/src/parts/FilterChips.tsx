import { setQuery, useQuery } from "./route";
import { Glyph, type GlyphName } from "./Glyph";
import type { Tone } from "./tone";

export interface Choice {
  value: string;
  label: string;
  count: number;
  tone?: Tone;
  glyph?: GlyphName;
}

/** One of several; which one stands in the address. The first means all. */
export function FilterChips({ field, label, choices }: { field: string; label: string; choices: Choice[] }) {
  const chosen = useQuery().get(field) ?? "";
  return (
    <div className="filters" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          className={`filter tone-${choice.tone ?? "calm"}`}
          aria-pressed={chosen === choice.value}
          onClick={() => setQuery(field, chosen === choice.value ? undefined : choice.value)}
        >
          {choice.glyph !== undefined && <Glyph name={choice.glyph} />}
          {choice.label} <b>{choice.count.toLocaleString("en-GB")}</b>
        </button>
      ))}
    </div>
  );
}
