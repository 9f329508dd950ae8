// How two objects differ, line by line, as YAML: what people compare them as.

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

const mostLines = 4000;
const around = 3;

/** Lines of the object's text, keys in their order, short and without quotes where that is clear. */
export function linesOf(state: string | undefined): string[] {
  if (state === undefined || state === "" || state === "null") return [];
  let value: unknown;
  try {
    value = JSON.parse(state);
  } catch {
    return state.split("\n").slice(0, mostLines);
  }
  const lines: string[] = [];
  write(value, "", lines, 0);
  return lines.slice(0, mostLines);
}

function write(value: unknown, indent: string, lines: string[], depth: number): void {
  if (lines.length > mostLines) return;
  if (depth > 60) {
    lines.push(`${indent}…`);
  } else if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      if (isBranch(item)) {
        const inner: string[] = [];
        write(item, `${indent}  `, inner, depth + 1);
        const [first = "", ...rest] = inner;
        lines.push(`${indent}- ${first.trimStart()}`, ...rest);
      } else lines.push(`${indent}- ${scalar(item)}`);
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if (isBranch(item)) {
        lines.push(`${indent}${key}:`);
        write(item, Array.isArray(item) ? indent : `${indent}  `, lines, depth + 1);
      } else lines.push(`${indent}${key}: ${scalar(item)}`);
    }
  } else lines.push(`${indent}${scalar(value)}`);
}

function isBranch(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function scalar(value: unknown): string {
  if (Array.isArray(value)) return "[]";
  if (typeof value === "object" && value !== null) return "{}";
  if (typeof value !== "string") return String(value);
  if (value === "" || /^[\s>|&*!%@`'"#{}[\],?:-]|: |[\n]|\s#|\s$|^(true|false|null|~|[\d.+-][\d.eE+_-]*)$/.test(value)) return JSON.stringify(value);
  return value;
}

/** What changes from the one to the other. Beyond bounds only the differing middle is shown whole, without looking for what is alike in it. */
export function diffOf(from: string[], to: string[]): DiffLine[] {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < from.length - start && end < to.length - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end += 1;
  const left = from.slice(start, from.length - end);
  const right = to.slice(start, to.length - end);
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [...from.slice(0, start).map(same), ...middle(left, right), ...from.slice(from.length - end).map(same)];
}

function middle(left: string[], right: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (left.length * right.length > 4_000_000) return [...left.map(removed), ...right.map(added)];
  // Longest common subsequence, from the end, so that reading it goes forward.
  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] =
        left[row] === right[column]
          ? (longest[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(longest[(row + 1) * width + column] ?? 0, longest[row * width + column + 1] ?? 0);
    }
  }
  const lines: DiffLine[] = [];
  let row = 0;
  let column = 0;
  while (row < left.length || column < right.length) {
    const here = left[row];
    const there = right[column];
    if (here !== undefined && here === there) {
      lines.push({ kind: "same", text: here });
      row += 1;
      column += 1;
    } else if (here !== undefined && (there === undefined || (longest[(row + 1) * width + column] ?? 0) >= (longest[row * width + column + 1] ?? 0))) {
      lines.push(removed(here));
      row += 1;
    } else if (there !== undefined) {
      lines.push(added(there));
      column += 1;
    }
  }
  return lines;
}

/** Only what changes, with a few lines around it. */
export function contextOf(lines: DiffLine[]): DiffLine[] {
  const kept = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let near = index - around; near <= index + around; near += 1) kept.add(near);
  });
  const shown: DiffLine[] = [];
  let hidden = 0;
  const flush = () => {
    if (hidden > 0) shown.push({ kind: "gap", text: `${hidden} lines alike` });
    hidden = 0;
  };
  lines.forEach((line, index) => {
    if (!kept.has(index)) hidden += 1;
    else {
      flush();
      shown.push(line);
    }
  });
  flush();
  return shown;
}

export const differs = (lines: DiffLine[]): boolean => lines.some((line) => line.kind !== "same");
