import type { Counts } from "../api/shapes";
import { count, percent } from "./format";

/** How far a rollout is: a lane of the track, with the baton where the work is. */
export function Track({ counts, label, slim = false }: { counts: Counts; label: string; slim?: boolean }) {
  const { total, done, updating, failed } = counts;
  const share = (part: number) => (total === 0 ? 0 : (part / total) * 100);
  const told = [
    `${done} of ${count(total, "Application")} done`,
    updating > 0 ? `${updating} under way` : "",
    failed > 0 ? `${failed} failed` : "",
  ].filter((part) => part !== "");
  const over = total > 0 && done === total;
  return (
    <div
      className={`track${slim ? " track-slim" : ""}${over ? " track-over" : ""}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={done}
      aria-valuetext={told.join(", ")}
    >
      <span className="track-part track-done" style={{ width: `${share(done)}%` }} />
      <span className="track-part track-failed" style={{ width: `${share(failed)}%` }} />
      <span className="track-part track-updating" style={{ width: `${share(updating)}%` }} />
      {!over && total > 0 && <span className="track-baton" style={{ left: `${share(done + failed + updating)}%` }} />}
    </div>
  );
}

/** The same in numbers. */
export function Tally({ counts }: { counts: Counts }) {
  return (
    <p className="tally">
      <strong>{percent(counts.done, counts.total)} %</strong>
      <span>
        {counts.done.toLocaleString("en-GB")} of {counts.total.toLocaleString("en-GB")} done
      </span>
      {counts.updating > 0 && <span className="tone-active">{counts.updating} under way</span>}
      {counts.failed > 0 && <span className="tone-bad">{counts.failed} failed</span>}
    </p>
  );
}
