// How times, numbers and names are written.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** A length of time in its two largest units: `45s`, `12m`, `3h 20m`, `5d 2h`. */
export function duration(milliseconds: number): string {
  const length = Math.max(0, milliseconds);
  if (length < minute) return `${Math.floor(length / second)}s`;
  if (length < hour) return two(length, minute, "m", second, "s", 10 * minute);
  if (length < day) return two(length, hour, "h", minute, "m", day);
  return two(length, day, "d", hour, "h", 10 * day);
}

/** The smaller unit is left out where it says nothing, and beyond `coarseFrom`, where nobody wants to know. */
function two(length: number, large: number, largeName: string, small: number, smallName: string, coarseFrom: number): string {
  const whole = Math.floor(length / large);
  const rest = Math.floor((length % large) / small);
  return rest === 0 || length >= coarseFrom ? `${whole}${largeName}` : `${whole}${largeName} ${rest}${smallName}`;
}

/** How long ago, roughly, or in how long; nothing for what is no time. */
export function relative(time: string | undefined | null, now: number): string {
  const at = timeOf(time);
  if (at === undefined) return "";
  const distance = now - at;
  if (Math.abs(distance) < 5 * second) return "just now";
  return distance > 0 ? `${largest(distance)} ago` : `in ${duration(-distance)}`;
}

/** What is past is told roughly. */
function largest(length: number): string {
  return duration(length).split(" ")[0] ?? "";
}

/** How long from one time to another, or until now. */
export function elapsed(from: string | undefined, to: string | undefined, now: number): string {
  const start = timeOf(from);
  if (start === undefined) return "";
  return duration((timeOf(to) ?? now) - start);
}

export function timeOf(time: string | undefined | null): number | undefined {
  if (time === undefined || time === null || time === "") return undefined;
  const at = Date.parse(time);
  return Number.isNaN(at) ? undefined : at;
}

/** The day and time in full, for those who want to know exactly. */
export function fullTime(time: string | undefined | null): string {
  const at = timeOf(time);
  return at === undefined ? "" : new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en-GB")} ${number === 1 ? one : many}`;
}

export function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.floor((part / whole) * 100);
}

const shaPattern = /^[0-9a-f]{12,64}$/i;

/** A commit as people say it; tags and branches stay as they are. */
export function shortRevision(revision: string | undefined): string {
  if (revision === undefined) return "";
  return shaPattern.test(revision) ? revision.slice(0, 7) : revision;
}

/** Only what leads to a page or a mailbox becomes a link: names, annotations and URLs come from repositories. */
export function safeHref(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
}

/** A word as a POSIX shell takes it. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function commandLine(words: (string | undefined | false)[]): string {
  return words.filter((word): word is string => typeof word === "string" && word !== "").map(shellWord).join(" ");
}

/** The part that names of a group have in common is said once: `web-prod-eu-1` becomes `eu-1` beside its sisters. */
export function sharedPrefix(names: string[]): string {
  const [first, ...others] = names;
  if (first === undefined || others.length === 0) return "";
  let length = first.length;
  for (const name of others) {
    let same = 0;
    while (same < length && name.charCodeAt(same) === first.charCodeAt(same)) same += 1;
    length = same;
  }
  const cut = first.slice(0, length).lastIndexOf("-");
  return cut < 0 ? "" : first.slice(0, cut + 1);
}
