// Reads the text of an event stream. The browser's own EventSource hides comments, and the server's sign of life is a comment: without it
// a quiet stream and a dead one look the same.

export type Frame = { kind: "data"; text: string } | { kind: "alive" };

/** A stream that sends no end of line is cut off here, before it fills the memory. */
const longestLine = 64 * 1024 * 1024;

export class FrameReader {
  private rest = "";
  private data: string[] = [];

  /** What the next piece of text completes. Throws where a single line grows beyond all reason. */
  push(piece: string): Frame[] {
    const frames: Frame[] = [];
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > longestLine) throw new Error("a line of the stream has no end");
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length > 0) frames.push({ kind: "data", text: this.data.join("\n") });
        this.data = [];
      } else if (line.startsWith(":")) {
        frames.push({ kind: "alive" });
      } else if (line.startsWith("data:")) {
        this.data.push(line.slice(line.charAt(5) === " " ? 6 : 5));
      }
    }
    return frames;
  }
}

/** The payload of a frame; `undefined` where it is none. An error that the server puts into the stream is thrown. */
export function resultOf(text: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const { result, error } = parsed as { result?: unknown; error?: { message?: unknown } };
  if (error !== undefined && error !== null) throw new Error(typeof error.message === "string" ? error.message : "the stream ended with an error");
  return result;
}
