//! What people and programs may see of a rollout.

use baton_api::rollout_status::{self as api, RolloutState, RolloutStatus, StepState, StepStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::blocker::Blocker;

/// Most blockers that are told one by one.
const TOLD: usize = 10;

impl Machine {
    /// How far each wanted Application is, by name.
    pub fn progress(&self) -> impl Iterator<Item = (Arc<str>, Progress)> + '_ {
        let members = self.apps.iter().filter(|(_, app)| app.member.is_some() || app.live.is_some());
        members.map(|(name, app)| (name.clone(), self.progress_of(name, app)))
    }

    /// The run as `status.rollout` tells it.
    pub fn status(&self, now: Timestamp) -> RolloutStatus {
        let run = &self.head.run;
        let blockers = self.blockers(now);
        let state = self.state();
        let mut message = match (state.clone(), blockers.first()) {
            (RolloutState::Complete, _) => "every Application is done".to_owned(),
            (_, Some(first)) => format!("{}: {}", first.reason.as_str(), first.message),
            (RolloutState::Failed, None) => match self.phase_standing() {
                Some(PhaseStanding::Failed(why)) => why.to_string(),
                _ => String::new(),
            },
            (_, None) => String::new(),
        };
        if self.holds_back {
            message.push_str(if message.is_empty() { "" } else { "; " });
            message.push_str("what the ApplicationSet wants by now waits for the end of this run");
        }
        let steps = match &self.wanted {
            Some(wanted) => self.step_statuses(wanted),
            None => Vec::new(),
        };
        let revisions = self.head.revisions.iter().map(|(key, resolution)| api::ResolvedRevision {
            repo_url: key.repo.to_string(),
            target_revision: key.target.to_string(),
            revision: resolution.sync.to_string(),
            chart: key.chart.to_string(),
        });
        RolloutStatus {
            run: i64::try_from(run.seq).unwrap_or(i64::MAX),
            state,
            message,
            strategy_hash: run.strategy.to_string(),
            pin_hash: self.pin_hash().to_string(),
            step: i64::try_from(run.open).unwrap_or(i64::MAX),
            steps,
            revisions: revisions.take(50).collect(),
            floor_resource_version: run.floor.to_string(),
            started_at: run.started.map(Time),
            finished_at: run.finished.filter(|_| !self.has_open_phase()).map(Time),
            paused_at: self.paused_since.map(Time),
            restarts: i64::try_from(run.restarts).unwrap_or(i64::MAX),
            blockers: told(blockers),
            ..RolloutStatus::default()
        }
    }

    /// What is waited for, the first first.
    pub fn blockers(&self, now: Timestamp) -> Vec<Blocker> {
        let Some(wanted) = self.wanted.as_ref().filter(|_| holds(Rule::Blockers)) else { return Vec::new() };
        let mut blockers = self.holds(wanted, now);
        blockers.extend(self.resolutions.iter().filter_map(|(key, resolving)| unresolved(key, resolving)));
        let mut own: Vec<(usize, Blocker)> = Vec::new();
        for (name, app) in &self.apps {
            let step = app.share.as_ref().map_or(usize::MAX, |share| share.step.unwrap_or(usize::MAX));
            if step != usize::MAX
                && let Some(blocker) = self.blocker_of(name, app)
            {
                own.push((step, blocker));
            }
        }
        // What holds the rollout up comes before those who wait for it.
        own.sort_by_key(|(step, blocker)| (is_queueing(blocker.reason), *step));
        blockers.extend(own.into_iter().map(|(_, blocker)| blocker));
        blockers
    }

    /// Notes since when what holds the set or a step is in the way.
    pub(super) fn note_holds(&mut self, wanted: &Wanted, now: Timestamp) {
        let holds = self.holds(wanted, now).into_iter();
        self.held_since = holds.map(|hold| ((hold.reason, hold.object), hold.since.unwrap_or(now))).collect();
    }

    /// What holds the set or a step.
    fn holds(&self, wanted: &Wanted, now: Timestamp) -> Vec<Blocker> {
        let run = &self.head.run;
        let mut blockers = Vec::new();
        let of = |object: Arc<str>, reason: Reason, message: String, next_look: Option<Timestamp>| {
            let since = self.held_since.get(&(reason, object.clone())).copied().or(Some(now));
            Blocker { reason, object, message, remedy: reason.remedy(), since, next_look }
        };
        let set = |reason: Reason, message: String, next_look: Option<Timestamp>| {
            of("".into(), reason, message, next_look)
        };
        let step = |number: usize| -> Arc<str> { format!("step {number}").into() };
        let settling = match self.unsettled.len() {
            0 => String::new(),
            writes => format!("; {writes} of its writes may land yet, and are settled first"),
        };
        if wanted.control.paused || run.paused {
            blockers.push(set(Reason::Paused, format!("the rollout is paused{settling}"), None));
        }
        if run.aborted {
            blockers.push(set(Reason::Aborted, format!("the run was aborted{settling}"), None));
        }
        if let Some(why) = &wanted.frozen {
            blockers.push(set(Reason::GeneratorError, why.to_string(), None));
        }
        if let Some(why) = &wanted.fuse {
            blockers.push(set(Reason::DeletionFuse, why.to_string(), None));
        }
        if self.awaits_next(wanted) {
            blockers.push(set(Reason::Superseded, self.news(), self.calm_at()));
        }
        if run.restarts >= STARVED && run.finished.is_none() {
            let message = format!("the run was begun anew {} times before it could end", run.restarts);
            blockers.push(set(Reason::Starved, message, None));
        }
        for at in 0..wanted.steps.len() {
            if self.is_overwhelmed(at, wanted) {
                let message = format!("more Applications of step {} failed than it allows", at + 1);
                blockers.push(of(step(at + 1), Reason::TooManyFailures, message, None));
            }
        }
        if let Some(end) = self.soaked_at(wanted, run).filter(|end| *end > now && *end < Timestamp::MAX)
            && run.open < wanted.steps.len()
        {
            let message = format!("step {} must stay healthy until {end}", run.open);
            blockers.push(of(step(run.open), Reason::Soaking, message, Some(end)));
        }
        for wait in self.gates.iter().flat_map(|(gates, _)| &gates.waits) {
            let reason = if wait.config { Reason::InvalidRolloutConfig } else { Reason::PhaseGate };
            blockers.push(of(wait.object.clone(), reason, wait.message.clone(), wait.until));
        }
        let shut = self.misstated(wanted, run.open).filter(|_| run.open < wanted.steps.len());
        if let Some(why) = shut.filter(|_| self.tally.is_reached(run.open)) {
            blockers.push(of(step(run.open), Reason::InvalidRolloutConfig, why.to_string(), None));
        }
        blockers
    }

    /// Whether the run, as far as it was last looked at, is to be followed by another.
    fn awaits_next(&self, wanted: &Wanted) -> bool {
        let run = &self.head.run;
        let differs = self.difference.is_some_and(|difference| difference.content || difference.revision);
        let is_ours = run.seq > 0 && *run.set == *wanted.set && !self.is_outdated(wanted);
        is_ours && differs && !self.finishes(wanted)
    }

    /// What a newer run is for.
    fn news(&self) -> String {
        let newer = |key: &SourceKey| {
            let (known, newest) = (self.head.revisions.get(key)?, self.resolutions.get(key)?.known.as_ref()?);
            (known != newest).then(|| newest.sync.clone())
        };
        let source = self.resolutions.keys().find_map(|key| Some((key, newer(key)?)));
        let what = match source {
            Some((key, revision)) => {
                format!("{} at {:?} is now {}", key.repo, &*key.target, evaluate::short(&revision))
            }
            None if self.has_backs() => {
                return format!("Applications are put back, which is done in run {}", self.head.run.seq + 1);
            }
            None => "the template has changed".to_owned(),
        };
        format!("{what}, which run {} is to roll out", self.head.run.seq + 1)
    }

    /// What the next run is to bring an Application to, where that is something else than this run does.
    fn next_pin(&self, app: &App) -> Option<Pin> {
        let (member, row) = (app.member.as_ref()?, self.head.row(app.id)?);
        let pin = pin_of(member, |key| self.resolutions.get(key)?.known.clone())?;
        (pin.hash != row.pin).then_some(pin)
    }

    fn state(&self) -> RolloutState {
        let (run, wanted) = (&self.head.run, self.wanted.as_ref());
        let phases = self.phase_standing();
        // Where phases alone give the order, they say what the failure of an Application means.
        let orders = wanted.is_none_or(|wanted| wanted.steps.len() < 2) && self.has_open_phase();
        let failed = !orders && self.tally.steps.iter().any(|count| count.failed > 0);
        // What was under way may land yet: nobody is told that nothing does before it is settled.
        let settled = self.unsettled.is_empty();
        let unbegun = |wanted: &Wanted| wanted.control.paused && !self.has_lost_head(wanted);
        if (run.paused && settled) || (run.seq == 0 && wanted.is_some_and(unbegun)) {
            RolloutState::Paused
        } else if run.seq == 0 {
            RolloutState::Idle
        } else if run.aborted && settled {
            RolloutState::Aborted
        } else if run.finished.is_some() && !wanted.is_some_and(|wanted| self.awaits_next(wanted)) {
            match phases {
                None | Some(PhaseStanding::Done) => RolloutState::Complete,
                Some(PhaseStanding::Failed(_)) => RolloutState::Failed,
                Some(PhaseStanding::UnderWay | PhaseStanding::Unknown) => RolloutState::Progressing,
            }
        } else if run.open == 0 || run.finished.is_some() {
            RolloutState::Arming
        } else if failed || matches!(phases, Some(PhaseStanding::Failed(_))) {
            RolloutState::Failed
        } else {
            RolloutState::Progressing
        }
    }

    /// Whether a phase of the run has not come to its end, as far as that is known.
    pub(super) fn has_open_phase(&self) -> bool {
        matches!(self.phase_standing(), Some(PhaseStanding::UnderWay | PhaseStanding::Unknown))
    }

    fn step_statuses(&self, wanted: &Wanted) -> Vec<StepStatus> {
        let run = &self.head.run;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let one = |(step, (plan, count)): (usize, (&crate::steps::Step, &tally::Count))| {
            let opening = run.openings.get(step);
            let well = count.undone == 0 && count.regressed == 0;
            let soaking = plan.wait.is_some() && run.open == step + 1 && run.open < wanted.steps.len();
            let state = match step < run.open {
                false => StepState::Waiting,
                true if self.is_overwhelmed(step, wanted) => StepState::Failed,
                true if well && soaking && count.total > 0 => StepState::Soaking,
                true if well => StepState::Complete,
                true => StepState::Open,
            };
            let wait_until = self.soaked_at(wanted, run).filter(|_| state == StepState::Soaking);
            StepStatus {
                step: number(step + 1),
                state,
                total: number(count.total),
                done: number(count.done()),
                updating: number(count.used),
                failed: number(count.failed + count.tolerated),
                max_update: plan.max_update.map(|share| number(share.of(count.total))),
                opened_at: opening.and_then(|opening| opening.at).map(Time),
                opened_resource_version: opening
                    .map(|opening| opening.version.to_string())
                    .unwrap_or_default(),
                completed_at: opening.and_then(|opening| opening.well_since).map(Time),
                wait_until: wait_until.map(Time),
            }
        };
        wanted.steps.iter().zip(&self.tally.steps).enumerate().map(one).collect()
    }

    fn pin_hash(&self) -> Fingerprint {
        let run = &self.head.run;
        Fingerprint::of([run.seq.to_string(), run.strategy.to_string(), run.floor.to_string()])
    }

    fn progress_of(&self, name: &Arc<str>, app: &App) -> Progress {
        let blocker = self.blocker_of(name, app);
        let message = match (&app.outcome, &blocker) {
            (Outcome::Done(Done::Synced), _) => {
                "Application was synced by this rollout and is Healthy".to_owned()
            }
            (Outcome::Done(Done::Unchanged), _) => "Application is Synced and Healthy already".to_owned(),
            (Outcome::Done(Done::Override), _) => "Application was synced by hand and is Healthy".to_owned(),
            (Outcome::Done(Done::Skipped), _) => "Application is skipped at this revision".to_owned(),
            (Outcome::Done(Done::Tolerated), _) => "Application failed, which the step allows".to_owned(),
            (_, Some(blocker)) => format!("{}: {}", blocker.reason.as_str(), blocker.message),
            (_, None) => "Application is to be synced".to_owned(),
        };
        let row = self.head.row(app.id);
        let failed = match &app.outcome {
            Outcome::Wait(wait) => wait.failed,
            Outcome::Done(done) => *done == Done::Tolerated,
            _ => false,
        };
        Progress {
            failure: blocker.clone().filter(|_| failed),
            regressed: blocker.clone().filter(|_| matches!(app.outcome, Outcome::Regressed(..))),
            touched: self.touched(app),
            skipped: matches!(app.outcome, Outcome::Done(Done::Skipped)),
            outdated: app.pin.as_ref().zip(row).is_some_and(|(pin, row)| pin.hash != row.pin),
            step: app.share.as_ref().and_then(|share| share.step),
            status: app.status,
            message,
            revisions: app.pin.as_ref().map(Pin::revisions).unwrap_or_default(),
            version: app.status_version,
            since: app.status_since,
            blocker,
            pin: app.pin.as_ref().map(|pin| pin.hash),
        }
    }

    /// The newest run that has brought an Application to its pin, or is about to. A slot that it holds since an earlier
    /// run tells nothing: what took it was another pin.
    fn touched(&self, app: &App) -> Option<u64> {
        let (run, row) = (&self.head.run, self.head.row(app.id));
        let synced = |row: &Row| matches!(row.done, Some(Done::Synced | Done::Tolerated));
        if row.is_some_and(|row| row.begun || synced(row)) {
            return Some(run.seq);
        }
        let pin = row.map(|row| row.pin).or(app.pin.as_ref().map(|pin| pin.hash))?;
        let ours = app.live.iter().flat_map(Live::operations);
        ours.filter(|stamp| *stamp.set == *run.set && stamp.pin == pin).map(|stamp| stamp.run).max()
    }

    fn blocker_of(&self, name: &Arc<str>, app: &App) -> Option<Blocker> {
        let step = app.share.as_ref().and_then(|share| share.step);
        let open = step.is_some_and(|step| step < self.head.run.open && self.tally.is_reached(step));
        let is_followed = || self.wanted.as_ref().is_some_and(|wanted| self.awaits_next(wanted));
        let (reason, message) = match &app.outcome {
            Outcome::Done(_) => return None,
            Outcome::Regressed(_, message, _) => match self.next_pin(app).filter(|_| is_followed()) {
                Some(pin) => {
                    let revisions: Vec<String> =
                        pin.revisions().iter().map(|revision| evaluate::short(revision).to_owned()).collect();
                    (Reason::Superseded, format!("the next run is to bring it to {}", revisions.join(", ")))
                }
                None => (Reason::Regressed, message.clone()),
            },
            Outcome::Unsettled => (Reason::Progressing, "it is being written".to_owned()),
            Outcome::Wait(wait) => (wait.reason, wait.message.clone()),
            Outcome::Ready(ready) if ready.intent == Intent::Arm => (Reason::Arming, ready.why.clone()),
            Outcome::Ready(ready) if open && ready.takes_slot() => {
                (Reason::WaitingForSlot, ready.why.clone())
            }
            Outcome::Ready(ready) if open => (Reason::WaitingForRefresh, ready.why.clone()),
            Outcome::Ready(ready) => (Reason::WaitingForStep, ready.why.clone()),
        };
        Some(Blocker {
            reason,
            object: name.clone(),
            message,
            remedy: reason.remedy(),
            since: Some(
                app.named.filter(|(named, _)| *named == reason).map_or(app.since, |(_, since)| since),
            ),
            next_look: app.timer,
        })
    }
}

fn unresolved(key: &SourceKey, resolving: &Resolving) -> Option<Blocker> {
    let (reason, error) = (Reason::RevisionUnresolved, resolving.error.as_deref()?);
    Some(Blocker {
        reason,
        object: key.repo.clone(),
        message: format!("{} at {:?} cannot be resolved: {error}", key.repo, &*key.target),
        remedy: reason.remedy(),
        since: resolving.failing_since,
        next_look: resolving.next(),
    })
}

fn is_queueing(reason: Reason) -> bool {
    matches!(reason, Reason::WaitingForStep | Reason::WaitingForSlot | Reason::PhaseGate)
}

/// The first blockers one by one; the rest of each reason as a number.
fn told(blockers: Vec<Blocker>) -> Vec<api::Blocker> {
    let mut objects: BTreeMap<Reason, BTreeSet<Arc<str>>> = BTreeMap::new();
    for blocker in blockers.iter().filter(|blocker| !blocker.object.is_empty()) {
        objects.entry(blocker.reason).or_default().insert(blocker.object.clone());
    }
    let count = |reason: Reason| objects.get(&reason).map_or(1, BTreeSet::len);
    let mut seen: BTreeSet<Reason> = BTreeSet::new();
    let first = blockers.into_iter().filter(|blocker| seen.insert(blocker.reason));
    first
        .take(TOLD)
        .map(|blocker| api::Blocker {
            reason: blocker.reason.as_str().to_owned(),
            object: blocker.object.to_string(),
            message: blocker.message,
            since: blocker.since.map(Time),
            remedy: blocker.remedy.to_owned(),
            // A look that moves with every look would have the status written for ever.
            next_check_at: blocker.next_look.filter(|_| blocker.reason == Reason::Soaking).map(Time),
            count: i64::try_from(count(blocker.reason)).unwrap_or(i64::MAX),
        })
        .collect()
}
