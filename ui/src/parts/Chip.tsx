import { Glyph } from "./Glyph";
import type { Look } from "./tone";

/** A state in a word, with its sign. */
export function Chip({ look, large = false, quiet = false }: { look: Look; large?: boolean; quiet?: boolean }) {
  return (
    <span className={`chip tone-${look.tone}${large ? " chip-large" : ""}${quiet ? " chip-quiet" : ""}`}>
      <Glyph name={look.glyph} className={look.glyph === "running" ? "turning" : ""} />
      {look.word}
    </span>
  );
}
