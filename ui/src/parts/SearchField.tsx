import { useEffect, useRef } from "react";
import { setQuery, useQuery } from "./route";
import { Glyph } from "./Glyph";

/** The search of a page: its text stands in the address, and `/` leads to it. */
export function SearchField({ label, field = "q" }: { label: string; field?: string }) {
  const input = useRef<HTMLInputElement>(null);
  const text = useQuery().get(field) ?? "";
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  return (
    <label className="search">
      <Glyph name="search" />
      <span className="hidden-label">{label}</span>
      <input
        ref={input}
        type="search"
        value={text}
        placeholder={label}
        autoComplete="off"
        spellCheck={false}
        maxLength={120}
        onChange={(event) => setQuery(field, event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          if (text === "") event.currentTarget.blur();
          else setQuery(field, undefined);
        }}
      />
      <kbd aria-hidden>/</kbd>
    </label>
  );
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.closest("dialog") !== null);
}
