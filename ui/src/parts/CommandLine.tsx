import { useState } from "react";
import { Glyph } from "./Glyph";

/** The same by the command line, to be taken along. */
export function CommandLine({ command }: { command: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    // Without TLS a browser has no clipboard to write to; the text can still be selected.
    void navigator.clipboard?.writeText(command).then(() => setCopied(true), () => setCopied(false));
  };
  return (
    <div className="command">
      <span className="command-label">By the command line</span>
      <code>{command}</code>
      <button type="button" className="button-bare" onClick={copy} aria-label={copied ? "Copied" : "Copy the command"}>
        <Glyph name={copied ? "done" : "copy"} />
      </button>
    </div>
  );
}
