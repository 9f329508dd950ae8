import { useEffect, useId, useRef, type FormEvent, type ReactNode } from "react";
import { CommandLine } from "./CommandLine";
import { Glyph } from "./Glyph";

interface Properties {
  title: string;
  children: ReactNode;
  /** The same by the command line. */
  command?: string;
  /** What the button says that does it. */
  confirm?: string;
  grave?: boolean;
  disabled?: boolean;
  busy?: boolean;
  error?: string | undefined;
  wide?: boolean;
  onConfirm?: () => void;
  onClose: () => void;
}

/** A question before something is done. The browser's own dialog keeps the focus inside, and Escape closes it. */
export function Dialog({ title, children, command, confirm, grave = false, disabled = false, busy = false, error, wide = false, onConfirm, onClose }: Properties) {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!disabled && !busy) onConfirm?.();
  };
  return (
    <dialog
      ref={box}
      className={`dialog${wide ? " dialog-wide" : ""}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <form onSubmit={submit} className="dialog-body">
        <header className="dialog-head">
          <h2 id={heading}>{title}</h2>
          <button type="button" className="button-bare" aria-label="Close" onClick={onClose}>
            <Glyph name="close" />
          </button>
        </header>
        <div className="dialog-content">{children}</div>
        {command !== undefined && <CommandLine command={command} />}
        {error !== undefined && (
          <p className="notice tone-bad" role="alert">
            <Glyph name="failed" />
            {error}
          </p>
        )}
        {confirm !== undefined && (
          <footer className="dialog-foot">
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
            <button type="submit" className={grave ? "button button-grave" : "button button-main"} disabled={disabled || busy}>
              {busy ? "Working…" : confirm}
            </button>
          </footer>
        )}
      </form>
    </dialog>
  );
}
