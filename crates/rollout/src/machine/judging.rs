//! What the news about one Application mean for the run, and for the counts of its step.

use super::evaluate::{Asked, Case};
use super::*;

impl Machine {
    pub(super) fn judge_due(&mut self, wanted: &Wanted, now: Timestamp) {
        while let Some((at, name)) = self.timers.first().cloned().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, name.clone()));
            if let Some(app) = self.apps.get_mut(&name) {
                app.timer = None;
            }
            self.dirty.insert(name);
        }
        while let Some(name) = self.dirty.pop_first() {
            self.judge(wanted, &name, now);
        }
    }

    pub(super) fn judge(&mut self, wanted: &Wanted, name: &Arc<str>, now: Timestamp) {
        let Some(mut app) = self.apps.remove(name) else { return };
        if let Some(share) = app.share.take() {
            self.tally.remove(name, &share);
        }
        if let Some(timer) = app.timer.take() {
            self.timers.remove(&(timer, name.clone()));
        }
        for set in
            [&mut self.settling, &mut self.unsettled, &mut self.fenced, &mut self.joining, &mut self.healing]
        {
            set.remove(name);
        }
        if app.member.is_none() && (app.live.is_none() || wanted.keeps_leavers) {
            // It left and is gone, or nobody waits for it to go.
            if app.live.is_some() {
                app.outcome = outcome(Reason::Leaving, "it is no longer wanted and stays");
                self.apps.insert(name.clone(), app);
            } else {
                self.names.remove(&app.id);
            }
            return;
        }
        if app.pin.is_none() {
            app.pin = app.member.as_ref().and_then(|member| self.pin(member));
        }
        let row = app.live.is_some().then(|| self.head.row(app.id)).flatten();
        let gate = self.gate_of(name, app.member.as_ref());
        let step = app.member.as_ref().map_or(app.left_from.or(Some(0)), |member| member.step);
        // Nobody waits for one that no phase holds.
        let step = step.filter(|_| !matches!(gate, Some(Gate::Aside(_))));
        let plan = step.and_then(|step| wanted.steps.get(step));
        let (mut heal, mut lapses) = (None, false);
        let (mut judged, mut wake) = (outcome(Reason::Leaving, "it is no longer wanted"), None);
        let (mut armed, mut entered) = (true, false);
        match (&app.member, &app.live, &app.pin, row) {
            (None, ..) => {}
            (Some(member), None, ..) => {
                judged = match &member.fault {
                    Some(why) => outcome(Reason::InvalidApplication, &**why),
                    None => outcome(Reason::Missing, "the Application is not there yet"),
                };
            }
            (Some(member), _, None, _) => {
                judged = outcome(Reason::RevisionUnresolved, self.unresolved(member));
            }
            (Some(_), Some(_), Some(_), None) => {
                judged = outcome(Reason::WaitingForStep, "it joins the rollout");
                self.joining.insert(name.clone());
            }
            (Some(member), Some(live), Some(pin), Some(row)) => {
                let mut case = Case {
                    live,
                    row,
                    pin,
                    run: self.head.run.seq,
                    set: &wanted.set,
                    held: plan.is_some_and(|plan| plan.is_held()) && holds(Rule::HeldSteps),
                    ordered: plan.is_some(),
                    self_heal: member.self_heal,
                    overtaken: self.is_overtaken(wanted, member, live, pin),
                    skipped: wanted.control.skip.get(name) == Some(&row.pin),
                    ends: self.is_to_end(name),
                    adopted: app.adopted,
                    asked: None,
                    asks: app.asks,
                    heals: app.heals,
                    since: app.since,
                    now,
                };
                if case.asks() && app.asked.as_ref().is_none_or(|asked| asked.n != row.n) {
                    app.asked = Some(Asked::by_another(live, row.n));
                }
                case.asked = app.asked.as_ref();
                judged = case.judge();
                if kind(&judged) != kind(&app.outcome) {
                    // Something new begins now. Only where it would be the same wait as before has that wait, by its
                    // own beginning, come to its end.
                    case.since = now;
                    let begun = case.judge();
                    if kind(&begun) != kind(&app.outcome) {
                        judged = begun;
                    }
                }
                let leaves = live.terminating && holds(Rule::TerminatingIsLeftAlone);
                if !leaves && !case.is_settled() {
                    self.unsettled.insert(name.clone());
                }
                armed = !live.automatic && !case.is_arming();
                entered = case.has_entered();
                if let (Some(late), None) = (deadline(row, plan).filter(|_| entered), row.done) {
                    match now >= late {
                        true => judged = case.late(judged),
                        false => wake = Some(late),
                    }
                }
                // Who was found to be at its pin before its turn, and is no longer, is brought there when its turn comes.
                let turn = step.is_none_or(|step| step < self.head.run.open)
                    && !matches!(gate, Some(Gate::Held(_) | Gate::Aside(_)));
                lapses = matches!(judged, Outcome::Regressed(..))
                    && row.done == Some(Done::Unchanged)
                    && !turn
                    && !pin.accepts(&live.deployed);
                heal = match &judged {
                    _ if lapses => None,
                    Outcome::Regressed(_, _, mend) => mend.clone(),
                    _ if row.done.is_none() && plan.is_some() => case.heal_as_before(),
                    _ => None,
                };
            }
        }
        if let Some(Gate::Held(why) | Gate::Aside(why)) = &gate
            && waits_for_phase(&judged)
        {
            judged = outcome(Reason::PhaseGate, &**why);
        }
        if app.since == NEVER || kind(&judged) != kind(&app.outcome) {
            app.since = now;
        }
        app.named = match &judged {
            Outcome::Wait(wait) if app.named.is_some_and(|(reason, _)| reason == wait.reason) => app.named,
            outcome if asks(outcome) => app.named,
            Outcome::Wait(wait) => Some((wait.reason, app.since)),
            _ => None,
        };
        let busy = app.live.as_ref().is_some_and(Live::is_busy);
        let (slot, done) = row.map_or((false, None), |row| (row.slot, row.done));
        if row.is_some_and(|row| row.fence) {
            self.fenced.insert(name.clone());
        }
        let is_settled = !self.unsettled.contains(name);
        let hold = match row.filter(|_| slot) {
            Some(row) if row.since > 0 || row.taken > 0 => Hold::Firm,
            Some(_) => Hold::Claim,
            None => Hold::None,
        };
        let active = (slot && entered) || (busy && !matches!(judged, Outcome::Done(_)));
        let share = Share {
            step,
            leaves: app.member.is_none(),
            undone: done.is_none() && !matches!(judged, Outcome::Done(_)),
            uses_slot: slot || (busy && !matches!(judged, Outcome::Done(_))),
            active,
            firm: active || hold == Hold::Firm,
            regressed: matches!(judged, Outcome::Regressed(..)),
            going: done.is_some() && matches!(&judged, Outcome::Wait(wait) if wait.reason == Reason::Leaving),
            failed: matches!(&judged, Outcome::Wait(wait) if wait.failed),
            tolerated: done == Some(Done::Tolerated),
            wants_slot: matches!(&judged, Outcome::Ready(ready) if ready.takes_slot()),
            hold,
            wants_write: matches!(&judged, Outcome::Ready(ready) if !ready.takes_slot()),
            unarmed: !armed && app.member.is_some() && holds(Rule::Arming),
        };
        let records = match &judged {
            Outcome::Done(_) => done.is_none() || (slot && is_settled && !busy),
            Outcome::Wait(wait) if wait.failed => plan.is_some_and(|plan| plan.max_failures.is_some()),
            Outcome::Regressed(..) => lapses,
            _ => false,
        };
        if records && row.is_some() {
            self.settling.insert(name.clone());
        }
        self.tally.add(name, &share);
        app.share = Some(share);
        if let Some(ready) = &heal {
            wake = earlier(wake, ready.not_before);
            self.healing.insert(name.clone());
        }
        if let Outcome::Wait(wait) = &judged {
            wake = earlier(wake, wait.wake);
        }
        if let Some(wake) = wake.filter(|wake| *wake > now) {
            app.timer = Some(wake);
            self.timers.insert((wake, name.clone()));
        }
        let status = match &judged {
            Outcome::Done(_) => Status::Healthy,
            Outcome::Unsettled if slot => Status::Pending,
            _ if slot || busy => Status::Progressing,
            _ => Status::Waiting,
        };
        if status != app.status || app.status_version == 0 {
            app.status = status;
            app.status_since = now;
            app.status_version = app.live.as_ref().map_or(0, |live| live.version);
        }
        (app.outcome, app.heal) = (judged, heal);
        self.apps.insert(name.clone(), app);
    }

    pub(super) fn unresolved(&self, member: &Member) -> String {
        let faulty = member.sources.iter().find_map(|key| {
            let resolving = self.resolutions.get(key)?;
            (resolving.known.is_none()).then_some((key, resolving.error.as_deref()))
        });
        match faulty {
            Some((key, Some(error))) => {
                format!("{} at {:?} cannot be resolved: {error}", key.repo, &*key.target)
            }
            Some((key, None)) => format!("{} at {:?} is being resolved", key.repo, &*key.target),
            None => "its revisions are being resolved".to_owned(),
        }
    }
}

pub(super) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether what is next for an Application is what phases hold back: that it comes to be, or is changed. That automatic
/// sync is off, and what it is compared with, is seen to before.
fn waits_for_phase(judged: &Outcome) -> bool {
    match judged {
        Outcome::Ready(ready) => matches!(ready.intent, Intent::Start | Intent::Spec | Intent::Heal),
        Outcome::Wait(wait) => matches!(wait.reason, Reason::Missing | Reason::HoldStep),
        _ => false,
    }
}

/// What an outcome is, without its words: it lasts as long as this is the same.
pub(super) fn kind(outcome: &Outcome) -> (u8, Option<Reason>, Option<Intent>) {
    match outcome {
        Outcome::Done(_) => (0, None, None),
        Outcome::Regressed(reason, ..) => (1, Some(*reason), None),
        Outcome::Ready(ready) => (2, None, Some(ready.intent)),
        Outcome::Unsettled => (3, None, None),
        Outcome::Wait(wait) => (4, Some(wait.reason), None),
    }
}

/// Whether a comparison is asked for: what made that necessary lasts meanwhile.
fn asks(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ready(ready) => matches!(ready.intent, Intent::Refresh | Intent::HardRefresh),
        Outcome::Wait(wait) => wait.reason == Reason::WaitingForRefresh,
        Outcome::Unsettled => true,
        Outcome::Done(_) | Outcome::Regressed(..) => false,
    }
}

/// When an Application that holds a slot has taken too long.
pub(super) fn deadline(row: &Row, plan: Option<&crate::steps::Step>) -> Option<Timestamp> {
    let allowed = i64::try_from(plan?.deadline?.as_secs()).ok()?;
    Timestamp::from_second(row.since.checked_add(allowed)?).ok().filter(|_| row.slot && row.since > 0)
}
