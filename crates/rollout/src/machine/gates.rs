//! Gates of phased deployments: who may be changed, beside what steps allow.
//!
//! Gates follow from the status of the set, and starts from the head. So that nothing is started by gates that are no
//! longer so, whoever follows other gates than the ones before notes that in the head first: a leader that knows an older
//! status finds a newer mark there, and stands still until it has read what that one did. Gates are of one run: those of
//! the run before let nobody through.

use serde::{Deserialize, Serialize};

use super::*;

/// Who may be changed, as phases have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates {
    /// Number of the run that they are for.
    pub run: u64,
    /// Version of the set that they follow from.
    pub version: u64,
    /// Applications of generators without phases.
    pub free: BTreeSet<Arc<str>>,
    /// By name. Who is neither here nor free may not be changed.
    pub gates: BTreeMap<Arc<str>, Gate>,
    /// Most Applications of a phase that may be under way at once, where there is a limit.
    pub limits: BTreeMap<PhaseKey, usize>,
    /// Applications whose operation is to be ended.
    pub terminate: BTreeSet<Arc<str>>,
    /// What phases wait for, the first first.
    pub waits: Vec<PhaseWait>,
    /// How the phases stand.
    pub standing: PhaseStanding,
}

/// How the phases of a set stand, all together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PhaseStanding {
    /// They have not ruled yet.
    #[default]
    Unknown,
    /// One has not come to its end: the run is not over, also where all its Applications are done.
    UnderWay,
    /// All have come to a good end.
    Done,
    /// Nothing of them is under way, and one has failed. In words.
    Failed(Arc<str>),
}

/// Something that a phase waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseWait {
    /// The Application, hook or check; empty for the phase.
    pub object: Arc<str>,
    /// In words.
    pub message: String,
    /// When it ends by itself, where that is known.
    pub until: Option<Timestamp>,
    /// Whether only another configuration ends it.
    pub config: bool,
}

/// Place of a generator, and of a phase in it.
pub type PhaseKey = (usize, usize);

/// Whether one Application may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// It may, in its phase.
    Open(PhaseKey),
    /// It may not. In words, why.
    Held(Arc<str>),
    /// It may not, and nobody waits for it: no phase holds it.
    Aside(Arc<str>),
    /// What is wanted of it is what it was before: it goes back there whatever its step.
    Back,
}

/// Which gates a run follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Version of the set that they follow from.
    pub version: u64,
    /// Of who may be changed.
    pub digest: Fingerprint,
}

const UNDECIDED: &str = "its phase is not known yet";

// === impl Gates ===

impl Gates {
    /// What is noted of them in the head.
    pub fn mark(&self) -> Mark {
        let parts = self.gates.iter().filter_map(|(name, gate)| {
            let way = match gate {
                Gate::Open((generator, phase)) => format!("{generator}.{phase}"),
                Gate::Back => "back".to_owned(),
                Gate::Held(_) | Gate::Aside(_) => return None,
            };
            Some([name.to_string(), way])
        });
        let digest = Fingerprint::of(parts.flatten());
        Mark { version: self.version, digest }
    }
}

// === impl Machine ===

impl Machine {
    /// Follows these gates; none where the set has no phases. Tells whether they are others than before.
    pub fn gate(&mut self, gates: Option<Gates>) -> bool {
        let news = self.gates.as_ref().map(|(gates, _)| gates) != gates.as_ref();
        if news {
            self.gates = gates.map(|gates| {
                let mark = gates.mark();
                (gates, mark)
            });
            self.dirty.extend(self.apps.keys().cloned());
        }
        news
    }

    /// Whether gates are followed.
    pub fn is_gated(&self) -> bool {
        self.gates.is_some()
    }

    /// How the phases of this run stand; none where there are none.
    pub fn phase_standing(&self) -> Option<&PhaseStanding> {
        let (gates, _) = self.gates.as_ref()?;
        Some(if gates.run == self.head.run.seq { &gates.standing } else { &PhaseStanding::Unknown })
    }

    /// Whether a leader that knew a newer status has followed other gates: the set is to be read anew.
    pub fn is_behind_gates(&self) -> bool {
        let noted = self.head.run.gates.as_ref();
        let Some(((gates, mark), noted)) = self.gates.as_ref().zip(noted) else { return false };
        gates.run == self.head.run.seq && noted.version > mark.version && mark.digest != noted.digest
    }

    /// Notes that other gates are followed than before.
    pub(super) fn note_gates(&self) -> Option<Change> {
        let (gates, mark) = self.gates.as_ref()?;
        let noted = self.head.run.gates.as_ref();
        let news = noted.is_none_or(|noted| noted.digest != mark.digest && noted.version <= mark.version);
        if !news || gates.run != self.head.run.seq || gates.run == 0 {
            return None;
        }
        let run = Run { gates: Some(mark.clone()), ..self.head.run.clone() };
        Some(Change { run: Some(run), ..Change::default() })
    }

    /// The gate of an Application; none where it has none.
    pub(super) fn gate_of(&self, name: &str, member: Option<&Member>) -> Option<Gate> {
        let (gates, mark) = self.gates.as_ref().filter(|(gates, _)| !gates.free.contains(name))?;
        let noted = self.head.run.gates.as_ref().map(|noted| noted.digest);
        let in_force = gates.run == self.head.run.seq && noted == Some(mark.digest);
        Some(match gates.gates.get(name) {
            // What it goes back to is not followed yet.
            Some(Gate::Back) if member.is_none_or(|member| member.back.is_none()) => {
                Gate::Held(UNDECIDED.into())
            }
            Some(Gate::Held(_)) if !holds(Rule::PhasesAreGated) => Gate::Open(PhaseKey::default()),
            Some(gate @ (Gate::Held(_) | Gate::Aside(_))) => gate.clone(),
            Some(gate) if in_force => gate.clone(),
            _ => Gate::Held(UNDECIDED.into()),
        })
    }

    fn gate_now(&self, name: &str) -> Option<Gate> {
        self.gate_of(name, self.apps.get(name).and_then(|app| app.member.as_ref()))
    }

    /// Why an Application may not be changed, where it may not.
    pub(super) fn shut(&self, name: &str) -> Option<Arc<str>> {
        match self.gate_now(name)? {
            Gate::Held(why) | Gate::Aside(why) => Some(why),
            Gate::Open(_) | Gate::Back => None,
        }
    }

    /// Whether an Application goes back to what it was before.
    pub(super) fn goes_back(&self, name: &str) -> bool {
        self.gate_now(name) == Some(Gate::Back)
    }

    /// Whether anybody goes back.
    pub(super) fn has_backs(&self) -> bool {
        self.gates.as_ref().is_some_and(|(gates, _)| gates.gates.values().any(|gate| *gate == Gate::Back))
    }

    /// The phases that have a limit, with how many more of each may be under way.
    pub(super) fn room(&self) -> BTreeMap<PhaseKey, usize> {
        let Some((gates, _)) = self.gates.as_ref() else { return BTreeMap::new() };
        let mut room = gates.limits.clone();
        for (name, gate) in gates.gates.iter().filter(|_| !gates.limits.is_empty()) {
            let share = self.apps.get(name).and_then(|app| app.share.as_ref());
            if let Gate::Open(phase) = gate
                && share.is_some_and(|share| share.uses_slot)
                && let Some(left) = room.get_mut(phase)
            {
                *left = left.saturating_sub(1);
            }
        }
        room
    }

    /// The phase of an Application that may be changed.
    pub(super) fn phase_of(&self, name: &str) -> Option<PhaseKey> {
        match self.gate_now(name)? {
            Gate::Open(phase) => Some(phase),
            _ => None,
        }
    }

    /// Whether the operation of an Application is to be ended.
    pub(super) fn is_to_end(&self, name: &str) -> bool {
        self.gates.as_ref().is_some_and(|(gates, _)| gates.terminate.contains(name))
    }
}
