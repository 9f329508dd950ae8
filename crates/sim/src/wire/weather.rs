//! Which faults there are, and how often each befalls the requests of a world.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::dice::Dice;

/// Everything that goes wrong in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A controller dies before its write took effect.
    CrashBefore,
    /// A controller dies after its write took effect, and before it knows.
    CrashAfter,
    /// An event of a watch comes late.
    Late,
    /// A write is refused with 409.
    Conflict,
    /// A request is refused with 429.
    Throttled,
    /// A write is refused with 5xx.
    Refused,
    /// A write takes effect and is answered with 5xx.
    FailedAfter,
    /// A write has no effect and no answer.
    Lost,
    /// A write takes effect and has no answer.
    Unanswered,
    /// A write has no answer, and takes effect long after.
    LandsLater,
    /// A read is answered with 5xx.
    ReadFails,
    /// A watch ends in the middle; what was under way is lost.
    WatchCut,
    /// A watch cannot go on where it ended: everything is listed anew, and what was between is never seen.
    TooOld,
    /// A list tells what was a while ago; the watch after it goes on from there.
    StaleList,
    /// Two controllers of sets at once.
    SecondLeader,
    /// A leader stands still between what it recorded and the write that allows, and later goes on beside its successor.
    FrozenLeader,
    /// A member answers nothing but 503 for a while.
    MemberAway,
    /// Git answers nothing for a while.
    GitAway,
    /// The clock of a controller is wrong.
    Skew,
    /// Somebody deletes the head of the rollout.
    HeadDeleted,
    /// Somebody empties the head of the rollout.
    HeadWiped,
    /// Somebody writes nonsense into the head of the rollout.
    HeadGarbled,
    /// What is shown of the rollout is refused, to the end.
    ViewRefused,
    /// A webhook writes something of its own, each time something else, into specifications of Applications.
    Rewritten,
    /// The Application controller reads git from a mirror that is some seconds behind.
    GitBehind,
    /// A controller dies when its intent to call a hook or a check is stored, before the call reaches anybody.
    CallCrashBefore,
    /// A controller dies when whom it called has done what it was asked, before that is on record.
    CallCrashAfter,
    /// A controller dies while it waits for what it asked to read.
    CrashAtRead,
    /// A watch that goes on tells once more what was told before.
    Replayed,
    /// A look at git takes a while.
    GitSlow,
    /// Two leaders whose clocks differ.
    ApartClocks,
    /// A member takes a while to answer.
    MemberSlow,
}

impl Fault {
    /// Every one.
    pub(crate) const ALL: [Fault; 32] = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::Late,
        Fault::Conflict,
        Fault::Throttled,
        Fault::Refused,
        Fault::FailedAfter,
        Fault::Lost,
        Fault::Unanswered,
        Fault::LandsLater,
        Fault::ReadFails,
        Fault::WatchCut,
        Fault::TooOld,
        Fault::StaleList,
        Fault::SecondLeader,
        Fault::FrozenLeader,
        Fault::MemberAway,
        Fault::GitAway,
        Fault::Skew,
        Fault::HeadDeleted,
        Fault::HeadWiped,
        Fault::HeadGarbled,
        Fault::ViewRefused,
        Fault::Rewritten,
        Fault::GitBehind,
        Fault::CallCrashBefore,
        Fault::CallCrashAfter,
        Fault::CrashAtRead,
        Fault::Replayed,
        Fault::GitSlow,
        Fault::ApartClocks,
        Fault::MemberSlow,
    ];
    /// How many of them, counted from the end, are in no world for their own sake: they come with others.
    const COMPANIONS: usize = 5;
    /// How many before these are about calls.
    const CALLS: usize = 2;

    /// Those of worlds that are neither wide nor phased.
    pub(crate) fn narrow() -> &'static [Fault] {
        let wide = Fault::wide();
        &wide[..wide.len() - 1]
    }

    /// Those of wide worlds: few of them call anybody.
    pub(crate) fn wide() -> &'static [Fault] {
        let phased = Fault::phased();
        &phased[..phased.len() - Fault::CALLS]
    }

    /// Those of phased worlds.
    pub(crate) fn phased() -> &'static [Fault] {
        &Fault::ALL[..Fault::ALL.len() - Fault::COMPANIONS]
    }

    /// As it is named on a command line: `crash-before`.
    pub(crate) fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Whether it strikes all the time where it strikes at all.
    pub(crate) fn is_frequent(self) -> bool {
        matches!(
            self,
            Fault::Late
                | Fault::WatchCut
                | Fault::TooOld
                | Fault::StaleList
                | Fault::Skew
                | Fault::Replayed
                | Fault::GitSlow
                | Fault::MemberSlow
        )
    }

    /// Whether it is something that happens to a world at a moment, and not to a request.
    pub(crate) fn is_event(self) -> bool {
        let heads = [Fault::HeadDeleted, Fault::HeadWiped, Fault::HeadGarbled];
        heads.contains(&self) || matches!(self, Fault::MemberAway | Fault::GitAway)
    }

    /// The pattern it follows, if it is one of the three.
    pub(crate) fn pattern(self) -> Option<Pattern> {
        match self {
            Fault::CrashBefore
            | Fault::CrashAfter
            | Fault::CrashAtRead
            | Fault::FrozenLeader
            | Fault::CallCrashBefore
            | Fault::CallCrashAfter => Some(Pattern::Intermediate),
            Fault::WatchCut | Fault::TooOld => Some(Pattern::Unobserved),
            Fault::Late | Fault::StaleList | Fault::Replayed => Some(Pattern::Stale),
            _ => None,
        }
    }

    /// In a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Fault::CrashBefore => "crash before a write",
            Fault::CrashAfter => "crash after a write",
            Fault::Late => "event delivered late",
            Fault::Conflict => "write refused with 409",
            Fault::Throttled => "request refused with 429",
            Fault::Refused => "write refused with 5xx",
            Fault::FailedAfter => "5xx after a write took effect",
            Fault::Lost => "write lost without an answer",
            Fault::Unanswered => "no answer after a write took effect",
            Fault::LandsLater => "write that takes effect after it was given up",
            Fault::ReadFails => "read answered with 5xx",
            Fault::WatchCut => "watch cut",
            Fault::TooOld => "watch too old to go on",
            Fault::StaleList => "list of what was a while ago",
            Fault::SecondLeader => "second leader",
            Fault::FrozenLeader => "leader frozen before a write it had recorded",
            Fault::MemberAway => "member away",
            Fault::GitAway => "git away",
            Fault::Skew => "clock of a controller wrong",
            Fault::HeadDeleted => "head of the rollout deleted",
            Fault::HeadWiped => "head of the rollout emptied",
            Fault::HeadGarbled => "head of the rollout garbled",
            Fault::ViewRefused => "status of the rollout refused",
            Fault::Rewritten => "specification rewritten on its way in",
            Fault::GitBehind => "push that comes late to the mirror of the Application controller",
            Fault::CallCrashBefore => "crash before a call",
            Fault::CallCrashAfter => "crash after a call",
            Fault::CrashAtRead => "crash while a read is waited for",
            Fault::Replayed => "watch that tells again what it told before",
            Fault::GitSlow => "look at git that takes a while",
            Fault::ApartClocks => "two leaders whose clocks differ",
            Fault::MemberSlow => "member that takes a while to answer",
        }
    }
}

/// What a fault does to what a controller knows: the three ways in which controllers were found to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pattern {
    /// It comes back to what it had half done.
    Intermediate,
    /// It never sees what was for a while.
    Unobserved,
    /// It goes by what was before.
    Stale,
}

impl Pattern {
    /// Every one.
    pub(crate) const ALL: [Pattern; 3] = [Pattern::Intermediate, Pattern::Unobserved, Pattern::Stale];

    /// As it is named on a command line, and what that asks for.
    pub(crate) fn name(self) -> (&'static str, &'static str) {
        match self {
            Pattern::Intermediate => ("intermediate", "every one that leaves something half done"),
            Pattern::Unobserved => ("unobserved", "every one after which something was never seen"),
            Pattern::Stale => ("stale", "every one that shows what was before"),
        }
    }

    /// In a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Pattern::Intermediate => "intermediate state",
            Pattern::Unobserved => "unobserved state",
            Pattern::Stale => "stale state",
        }
    }
}

/// Faults of requests that fail or succeed at once, and how often each happens where it does.
const QUICK: [Fault; 5] =
    [Fault::Conflict, Fault::Throttled, Fault::Refused, Fault::FailedAfter, Fault::ReadFails];
/// Faults of requests that are waited for until time is up.
const SILENT: [Fault; 3] = [Fault::Lost, Fault::Unanswered, Fault::LandsLater];

/// How long nothing of a rollout can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Blind {
    #[default]
    Never,
    /// While there are faults.
    Meanwhile,
    ToTheEnd,
}

/// How often what goes wrong with requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weather {
    /// Longest delay of a watch.
    pub(crate) lag: Duration,
    /// Of a thousand requests.
    pub(crate) rates: BTreeMap<Fault, u64>,
    /// Longest life of a watch.
    pub(crate) cut: Option<Duration>,
    /// Of a hundred watches that go on, how many cannot.
    pub(crate) too_old: u64,
    /// Of a hundred watches that go on, how many tell again what was told.
    pub(crate) replays: u64,
    /// Of a hundred lists that fill a cache, how many are old.
    pub(crate) stale: u64,
    /// How long the rollout may show nothing.
    pub(crate) blind: Blind,
    /// Whether a webhook rewrites specifications.
    pub(crate) rewrites: bool,
    /// Longest time that a member takes to answer.
    pub(crate) slow_members: Duration,
}

impl Weather {
    /// Draws the weather of a world in which one fault is sure to be tried, alone or among others.
    pub(crate) fn new(dice: &mut Dice, featured: Fault, alone: bool, wide: bool) -> Weather {
        let others = |dice: &mut Dice, percent: u64| dice.chance(percent) && !alone;
        let mut lag = Duration::from_millis(*dice.pick(&[0, 500, 2_000, 5_000]));
        if alone {
            lag = Duration::ZERO;
        }
        if featured == Fault::Late {
            lag = lag.max(Duration::from_secs(2));
        }
        let mut rates = BTreeMap::new();
        for fault in QUICK {
            if featured == fault || others(dice, 15) {
                rates.insert(fault, *dice.pick(&[5, 15, 40]).max(&if featured == fault { 40 } else { 0 }));
            }
        }
        for fault in SILENT {
            if featured == fault || others(dice, 6) {
                rates.insert(fault, if featured == fault { 25 } else { 8 });
            }
        }
        // Lists fill caches where watches cannot go on.
        let relists = featured == Fault::TooOld || (featured == Fault::StaleList && wide);
        let cuts = relists || featured == Fault::WatchCut || others(dice, 20);
        let cut = cuts.then(|| Duration::from_secs(*dice.pick(&[10, 30, 90])));
        let too_old = match cuts {
            true => {
                if relists {
                    60
                } else {
                    *dice.pick(&[0, 20, 50])
                }
            }
            false => 0,
        };
        let stale = match featured == Fault::StaleList {
            true => 80,
            false if others(dice, 20) => 30,
            false => 0,
        };
        let blind = if featured == Fault::ViewRefused { Blind::ToTheEnd } else { Blind::Never };
        let rewrites = featured == Fault::Rewritten;
        // Without a roll of the dice, or all that is drawn after it would be other.
        let replays = if cuts && wide { 40 } else { 0 };
        // Drawn with what comes beside other faults.
        let slow_members = Duration::ZERO;
        Weather { lag, rates, cut, too_old, replays, stale, blind, rewrites, slow_members }
    }

    /// Weather with these faults and no others.
    pub(crate) fn of(faults: &BTreeSet<Fault>) -> Weather {
        let has = |fault: Fault| faults.contains(&fault);
        let rates = |faults: &[Fault], rate: u64| {
            faults.iter().copied().filter(|fault| has(*fault)).map(|fault| (fault, rate)).collect::<Vec<_>>()
        };
        let cuts = has(Fault::WatchCut) || has(Fault::TooOld) || has(Fault::Replayed);
        Weather {
            lag: if has(Fault::Late) { Duration::from_secs(5) } else { Duration::ZERO },
            rates: rates(&QUICK, 30).into_iter().chain(rates(&SILENT, 15)).collect(),
            // What is too old was cut before.
            cut: cuts.then_some(Duration::from_secs(30)),
            too_old: if has(Fault::TooOld) { 50 } else { 0 },
            replays: if has(Fault::Replayed) { 50 } else { 0 },
            stale: if has(Fault::StaleList) { 50 } else { 0 },
            blind: if has(Fault::ViewRefused) { Blind::Meanwhile } else { Blind::Never },
            rewrites: has(Fault::Rewritten),
            slow_members: Duration::from_secs(if has(Fault::MemberSlow) { 5 } else { 0 }),
        }
    }

    /// Whether controllers wait for answers that never come.
    pub(crate) fn is_silent(&self) -> bool {
        SILENT.iter().any(|fault| self.rates.contains_key(fault))
    }

    /// What befalls a request, if anything does.
    pub(crate) fn strike(&self, dice: &mut Dice, is_read: bool, is_create: bool) -> Option<Fault> {
        let fits = |fault: Fault| match fault {
            Fault::ReadFails => is_read,
            Fault::Throttled => true,
            Fault::Conflict => !is_read && !is_create,
            _ => !is_read,
        };
        let struck = self.rates.iter().find(|(_, rate)| dice.below(1000) < **rate);
        struck.map(|(fault, _)| *fault).filter(|fault| fits(*fault))
    }
}
