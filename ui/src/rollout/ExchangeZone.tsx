import type { Gate } from "../api/shapes";
import { duration } from "../parts/format";
import { Glyph } from "../parts/Glyph";
import { Lasted, Until } from "../parts/time";
import { gateLook } from "../parts/tone";
import type { Zone } from "./tracks";

const kinds: Record<Gate["kind"], string> = { preHook: "Before", check: "Check", postHook: "After", wait: "Wait", previous: "Order" };

/** What stands between two lanes. */
export function ExchangeZone({ zone, baton, waitUntil, label }: { zone: Zone; baton: boolean; waitUntil: string | undefined; label: string }) {
  const bare = zone.gates.length === 0;
  return (
    <div className={`zone${bare ? " zone-bare" : ""}${baton ? " zone-here" : ""}`}>
      <div className="zone-rail" aria-hidden>
        {baton && <span className="baton" data-flip="baton" />}
      </div>
      {!bare && (
        <ul className="zone-gates" aria-label={label}>
          {zone.gates.map((gate) => (
            <GateRow key={`${gate.lane} ${gate.kind} ${gate.name}`} gate={gate} waitUntil={gate.kind === "wait" ? waitUntil : undefined} />
          ))}
        </ul>
      )}
    </div>
  );
}

function GateRow({ gate, waitUntil }: { gate: Gate; waitUntil: string | undefined }) {
  const look = gateLook(gate.state);
  return (
    <li className={`gate tone-${look.tone}`}>
      <Glyph name={look.glyph} className={look.glyph === "running" ? "turning" : ""} />
      <span className="gate-name">{gate.name}</span>
      <span className="gate-state">
        {kinds[gate.kind] ?? gate.kind} · {look.word.toLowerCase()}
        {gate.state === "Running" && waitUntil !== undefined && <> · <Until time={waitUntil} /> left</>}
        {gate.state === "Running" && waitUntil === undefined && gate.startedAt !== undefined && <> · <Lasted from={gate.startedAt} /></>}
        {gate.state !== "Running" && gate.seconds !== undefined && ` · ${duration(gate.seconds * 1000)}`}
        {gate.attempt !== undefined && gate.attempt > 1 && ` · attempt ${gate.attempt}`}
      </span>
      {gate.message !== undefined && gate.message !== "" && <span className="gate-message">{gate.message}</span>}
    </li>
  );
}
