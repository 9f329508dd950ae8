import { useEffect, useRef, useState, type ReactNode } from "react";

interface Properties<T> {
  items: T[];
  /** Height of a row in rem; all rows have the same. */
  height: number;
  label: string;
  keyOf: (item: T) => string;
  row: (item: T) => ReactNode;
}

const beyond = 8;

/** A list that draws only the rows in sight; it scrolls with the page, so that there is one scroll bar. */
export function VirtualRows<T>({ items, height, label, keyOf, row }: Properties<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ first: 0, last: 40 });
  useEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const pixels = height * parseFloat(getComputedStyle(document.documentElement).fontSize);
      const first = Math.max(0, Math.floor(-top / pixels) - beyond);
      const last = first + Math.ceil(innerHeight / pixels) + 2 * beyond;
      setSight((before) => (before.first === first && before.last === last ? before : { first, last }));
    };
    const later = () => {
      if (frame === 0) frame = requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, [height, items.length]);
  const shown = items.slice(sight.first, sight.last);
  return (
    <div ref={box} className="virtual" role="list" aria-label={label} style={{ height: `${items.length * height}rem` }}>
      {shown.map((item, index) => (
        <div
          key={keyOf(item)}
          className="virtual-row"
          role="listitem"
          aria-setsize={items.length}
          aria-posinset={sight.first + index + 1}
          style={{ top: `${(sight.first + index) * height}rem`, height: `${height}rem` }}
        >
          {row(item)}
        </div>
      ))}
    </div>
  );
}
