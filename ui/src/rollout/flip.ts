// Things that change place glide there, so that the eye keeps hold of them: measured before and after, played back to where they were.

import { useLayoutEffect, useRef, type RefObject } from "react";

/** Beyond so many at once nobody follows, and measuring would cost more than it tells. */
const mostMoving = 240;

export function useFlip(box: RefObject<HTMLElement | null>, changed: unknown): void {
  const places = useRef(new Map<string, DOMRect>());
  useLayoutEffect(() => {
    const here = box.current;
    if (here === null) return;
    const things = here.querySelectorAll<HTMLElement>("[data-flip]");
    const next = new Map<string, DOMRect>();
    const still = things.length > mostMoving || matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden;
    const origin = here.getBoundingClientRect();
    if (!still) {
      for (const thing of things) {
        const key = thing.dataset["flip"] ?? "";
        const rect = thing.getBoundingClientRect();
        // Places are kept relative to the board: scrolling is no movement.
        const place = new DOMRect(rect.x - origin.x, rect.y - origin.y, rect.width, rect.height);
        next.set(key, place);
        const before = places.current.get(key);
        if (before !== undefined) glide(thing, before.x - place.x, before.y - place.y);
      }
    }
    places.current = next;
  }, [box, changed]);
}

function glide(thing: HTMLElement, x: number, y: number): void {
  if (Math.abs(x) < 2 && Math.abs(y) < 2) return;
  thing.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], { duration: 420, easing: "cubic-bezier(.2,.7,.2,1)" });
}
