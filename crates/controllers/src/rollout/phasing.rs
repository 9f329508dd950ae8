//! What phases rule, brought into the rollout of a set.
//!
//! The machine is asked first: it begins runs, and finishes what was begun. Where it has nothing to do, phases are asked
//! who may go next, and what they rule is what the machine goes by from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::names::baton as names;
use baton_phases::{Gate as Ruled, Hold, Notice, Outlook, Progress as Far, Requests};
use baton_rollout::blocker::Reason;
use baton_rollout::machine::{Gate, Gates, PhaseStanding, PhaseWait, Progress, Status};
use jiff::Timestamp;
use serde_json::Value;

use super::board::{Admission, Offer, Phased};
use super::desk::Desk;
use super::reconcile::{PassError, Reconciler};
use crate::cache::ObjectKey;
use crate::phases::{GoodState, Round, Ruling, SeenApp, newest_run};

/// What phases ruled last.
#[derive(Default)]
pub(super) struct Phasing {
    /// What those who go back are to be: a pin, and the specification.
    backs: BTreeMap<Arc<str>, GoodState>,
    /// An offer, and what becomes of it with them.
    amended: Option<(Arc<Offer>, Arc<Offer>)>,
    /// Whether what is seen is no older than a list that phases asked for.
    consistent: bool,
    /// The newest run of phases for which the head was read anew.
    newest: u64,
    /// What people should know.
    pub(super) notices: Vec<Notice>,
}

impl Phasing {
    /// What is to be followed of an offer.
    pub(super) fn amended(&mut self, offer: &Arc<Offer>) -> Arc<Offer> {
        if self.backs.is_empty() {
            self.amended = None;
            return offer.clone();
        }
        if let Some((from, made)) = &self.amended
            && Arc::ptr_eq(from, offer)
        {
            return made.clone();
        }
        let specs = self.backs.iter().map(|(name, (_, spec))| (name.clone(), spec.clone())).collect();
        let made = Arc::new(offer.put_back(&specs));
        self.amended = Some((offer.clone(), made.clone()));
        made
    }

    /// Tells whether others go back, or to something else, than before.
    pub(super) fn go_back(&mut self, backs: BTreeMap<Arc<str>, GoodState>) -> bool {
        let news = self.backs != backs;
        if news {
            (self.backs, self.amended) = (backs, None);
        }
        news
    }
}

impl Phased {
    /// Every Application that phases have a say in.
    fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.targets.values().flatten().map(|target| &target.name)
    }

    /// The step of each of them, where there is more than one.
    fn steps(&self, offer: &Offer) -> BTreeMap<Arc<str>, usize> {
        if offer.wanted.steps.len() < 2 {
            return BTreeMap::new();
        }
        let step = |name: &Arc<str>| {
            let labels = &offer.templates.get(name)?.labels;
            Some((name.clone(), offer.wanted.steps.place(labels)?))
        };
        self.names().filter_map(step).collect()
    }

    /// The gates before phases have ruled: nobody goes through, but who has no phase to mind.
    pub(super) fn shut(&self, offer: &Offer) -> Gates {
        let governed: BTreeSet<&Arc<str>> = self.names().collect();
        let free = offer.wanted.members.keys().filter(|name| !governed.contains(name));
        Gates { free: free.cloned().collect(), ..Gates::default() }
    }
}

impl Reconciler {
    /// Lets phases rule. Tells whether there is more to do at once, and when to look again.
    pub(super) async fn phase(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
        phased: &Phased,
    ) -> Result<(bool, Option<Timestamp>), PassError> {
        if desk.machine.is_behind_gates()
            && let Some(raw) = self.sets(key).get(&key.name).await.map_err(PassError::Set)?
        {
            self.learn_set(key, &raw);
        }
        let Some(set) = self.set(key) else { return Ok((false, None)) };
        let run = &desk.machine.head().run;
        if run.seq == 0 || set.metadata.uid.as_deref() != Some(&*run.set) {
            return Ok((false, None));
        }
        let newest = newest_run(&set);
        if newest > run.seq && newest > desk.phasing.newest {
            // Another leader is ahead: what it has passed is not begun again for a run that is over.
            (desk.phasing.newest, desk.doubts_head) = (newest, true);
            return Ok((true, None));
        }
        let wanted = |name: &Arc<str>| {
            let pin = desk.machine.wanted_pin(name)?;
            Some((name.clone(), pin.hash.to_string().into()))
        };
        // What is not known to be wanted is not ruled on.
        let Some(pins) = phased.names().map(wanted).collect::<Option<BTreeMap<Arc<str>, Arc<str>>>>() else {
            return Ok((false, None));
        };
        let seen = desk.machine.progress().filter(|(name, _)| pins.contains_key(name));
        let seen = seen.map(|(name, progress)| {
            let seen = seen_of(&name, progress, &desk.phasing);
            (name, seen)
        });
        let seen: BTreeMap<Arc<str>, SeenApp> = seen.collect();
        let (held, retry) = (run.paused || self.control(key).paused, run.granted.retry.clone());
        let now = self.settings.clock.now();
        let specs = |name: &str| {
            let revisions = desk.machine.wanted_pin(name)?.revisions();
            pinned(&offer.templates.get(name)?.spec, &revisions)
        };
        let steps = phased.steps(offer);
        let round = Round {
            set: &set,
            run: run.seq,
            targets: &phased.targets,
            pins: &pins,
            seen: &seen,
            specs: &specs,
            params: &|name| Some(phased.params.get(name)?.params()),
            steps: &steps,
            requests: requests(&set, retry.as_deref()),
            hold: if held { Hold::Paused } else { Hold::None },
            consistent: desk.phasing.consistent,
            now,
        };
        let ruling = self.phases.round(key, round).await?;
        if let Some(raw) = &ruling.set {
            self.learn_set(key, raw);
        }
        desk.phasing.consistent = false;
        if ruling.again {
            // What is ruled then is ruled by what is stored now.
            return Ok((true, None));
        }
        let wake = ruling.wake;
        let mut more = ruling.list;
        if ruling.list {
            self.list(key, desk, offer).await?;
            desk.phasing.consistent = true;
        }
        more |= self.follow(key, desk, offer, phased, ruling);
        Ok((more, wake))
    }

    /// Goes by what phases rule. Tells whether that is something new.
    fn follow(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
        phased: &Phased,
        ruling: Ruling,
    ) -> bool {
        let mut backs = BTreeMap::new();
        let mut gates = BTreeMap::new();
        for (name, ruled) in ruling.gates {
            let gate = match ruled.gate {
                Ruled::Open { .. } => Gate::Open(ruled.group),
                Ruled::Aside(why) => Gate::Aside(why.into()),
                Ruled::Held(why) => Gate::Held(why.into()),
                Ruled::Back { pin } => {
                    if let Some(spec) = ruling.back.get(&name) {
                        backs.insert(name.clone(), (pin, spec.clone()));
                    }
                    Gate::Back
                }
            };
            gates.insert(name, gate);
        }
        let admission = |(name, gate): (&Arc<str>, &Gate)| match gate {
            Gate::Open(_) => Some((name.clone(), Admission::Whole)),
            // Who is gone comes again, to be put back.
            Gate::Back if backs.contains_key(name) => Some((name.clone(), Admission::Creation)),
            _ => None,
        };
        if self.board.admit(key, gates.iter().filter_map(admission).collect()) {
            self.generation.add(key.clone());
        }
        let wait = |wait: baton_phases::Wait| PhaseWait {
            object: wait.object.into(),
            message: wait.message,
            until: wait.until,
            config: wait.config,
        };
        let gates = Gates {
            run: desk.machine.head().run.seq,
            version: ruling.version,
            gates,
            limits: ruling.limits,
            terminate: ruling.terminate.into_iter().collect(),
            waits: ruling.waits.into_iter().map(wait).collect(),
            standing: match ruling.outlook {
                Some(Outlook::Done) => PhaseStanding::Done,
                Some(Outlook::UnderWay(_)) | None => PhaseStanding::UnderWay,
                Some(Outlook::Failed(why)) => PhaseStanding::Failed(why.into()),
            },
            ..phased.shut(offer)
        };
        desk.phasing.notices = ruling.notices;
        let others = desk.phasing.go_back(backs);
        desk.machine.gate(Some(gates)) || others
    }
}

/// How far an Application is, as phases see it.
fn seen_of(name: &str, progress: Progress, phasing: &Phasing) -> SeenApp {
    let blocker = progress.blocker.as_ref().map(|blocker| (blocker.reason, &blocker.message));
    let far = match (&progress.failure, &progress.regressed, blocker, progress.status) {
        (Some(why), ..) => {
            Far::Failed { reason: why.reason.as_str().to_owned(), message: why.message.clone() }
        }
        (_, Some(why), ..) => Far::Regressed(why.message.clone()),
        (_, _, Some((Reason::ApprovalRequired, what)), _) => Far::AwaitingApproval(what.clone()),
        // Phases ask only of those they have let through.
        (_, _, Some((Reason::InvalidApplication, why)), Status::Waiting) => Far::Stuck(why.clone()),
        // What is being deleted is no longer changed; what comes in its place has not started.
        (_, _, Some((Reason::Leaving, _)), _) => Far::NotStarted,
        // That it was done, or counted as such, was said of what it does not go back to.
        (.., Status::Healthy) if progress.outdated && phasing.backs.contains_key(name) => Far::UnderWay,
        (.., Status::Healthy) => Far::Done,
        (.., Status::Pending | Status::Progressing) => Far::UnderWay,
        (.., Status::Waiting) => Far::NotStarted,
    };
    let own = || progress.pin.map(|pin| pin.to_string()).unwrap_or_default().into();
    let pin = phasing.backs.get(name).map(|(pin, _)| pin.clone()).unwrap_or_else(own);
    SeenApp { progress: far, pin, touched: progress.touched, skipped: progress.skipped }
}

/// What people ask of phases. A request to try again is heard when the run has heard it.
pub(super) fn requests(set: &ApplicationSet, retried: Option<&str>) -> Requests {
    let asked = |name: &str| {
        let text = set.metadata.annotations.as_ref()?.get(name)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    Requests {
        advance: asked(names::ADVANCE),
        rollback: asked(names::ROLLBACK),
        rollback_all: asked(names::ROLLBACK_ALL),
        abort: asked(names::ABORT),
        retry: asked(names::RETRY).filter(|retry| retried == Some(retry)),
    }
}

/// A specification whose sources ask for nothing but these revisions.
fn pinned(spec: &str, revisions: &[Arc<str>]) -> Option<Value> {
    let mut spec: Value = serde_json::from_str(spec).ok()?;
    let several = spec.get("sources").and_then(Value::as_array).is_some_and(|sources| !sources.is_empty());
    let sources: Vec<&mut Value> = match several {
        true => spec["sources"].as_array_mut()?.iter_mut().collect(),
        false => vec![spec.get_mut("source")?],
    };
    if sources.len() != revisions.len() {
        return None;
    }
    for (source, revision) in sources.into_iter().zip(revisions) {
        source["targetRevision"] = (&**revision).into();
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_good_specification_asks_for_its_own_revisions() {
        let one = json!({"source": {"repoURL": "r", "targetRevision": "main"}, "project": "p"}).to_string();
        let pinned_one = pinned(&one, &["abc".into()]).expect("a specification");
        assert_eq!(pinned_one, json!({"source": {"repoURL": "r", "targetRevision": "abc"}, "project": "p"}));
        let two = json!({"sources": [{"repoURL": "a"}, {"repoURL": "b", "targetRevision": "x"}]}).to_string();
        let pinned_two = pinned(&two, &["1".into(), "2".into()]).expect("a specification");
        assert_eq!(pinned_two["sources"][0]["targetRevision"], "1");
        assert_eq!(pinned_two["sources"][1]["targetRevision"], "2");
        assert_eq!(pinned(&two, &["1".into()]), None, "a revision is missing");
        assert_eq!(pinned("{}", &["1".into()]), None);
    }

    #[test]
    fn who_counts_as_done_is_not_back_before_what_it_goes_back_to_is_on_record() {
        let progress = |outdated: bool| Progress {
            step: None,
            status: Status::Healthy,
            message: String::new(),
            revisions: Vec::new(),
            version: 1,
            since: Timestamp::UNIX_EPOCH,
            blocker: None,
            pin: None,
            failure: None,
            regressed: None,
            touched: Some(1),
            skipped: outdated,
            outdated,
        };
        let mut phasing = Phasing::default();
        assert_eq!(seen_of("web", progress(true), &phasing).progress, Far::Done);
        phasing.go_back([("web".into(), ("old".into(), Arc::new(json!({}))))].into());
        let seen = seen_of("web", progress(true), &phasing);
        assert_eq!((seen.progress, &*seen.pin), (Far::UnderWay, "old"));
        assert_eq!(seen_of("web", progress(false), &phasing).progress, Far::Done);
    }

    #[test]
    fn a_request_to_try_again_is_heard_once_the_run_has_heard_it() {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"annotations": {
                "baton.dev/advance": " a ", "baton.dev/rollback": "", "baton.dev/rollback-all": "c",
                "baton.dev/abort": "d", "baton.dev/retry": "e/web",
            }},
            "spec": {"generators": [], "template": {}},
        }))
        .expect("a set");
        let text = |text: &str| Some(text.to_owned());
        let before = requests(&set, Some("d"));
        let expected = Requests {
            advance: text("a"),
            rollback: None,
            rollback_all: text("c"),
            abort: text("d"),
            retry: None,
        };
        assert_eq!(before, expected);
        assert_eq!(requests(&set, Some("e/web")), Requests { retry: text("e/web"), ..expected });
    }
}
