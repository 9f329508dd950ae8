//! The table: how each state comes about, and every way out of it.

use baton_api::application_status::{HealthCode, SyncCode};
use baton_api::names::baton::{ABORT, PAUSED, RETRY, SKIP, SUPERSEDE};
use baton_rollout::blocker::Reason;
use baton_rollout::live::Live;
use baton_rollout::pin::Fingerprint;
use serde_json::json;

use crate::stage::{FLEET, Mood, REPOSITORY, Stage, plain};

/// Words of a remedy, and the doing of just that.
type Way = (&'static str, fn(&mut Stage));

/// One row.
pub(crate) struct Case {
    pub(crate) reason: Reason,
    /// Whom it names.
    pub(crate) object: &'static str,
    pub(crate) message: &'static str,
    /// Brings it about.
    pub(crate) state: fn() -> Stage,
    /// For so many seconds it is watched.
    pub(crate) lasts: usize,
    /// Every way out.
    pub(crate) ways: &'static [Way],
}

const fn case(
    reason: Reason,
    object: &'static str,
    message: &'static str,
    state: fn() -> Stage,
    ways: &'static [Way],
) -> Case {
    Case { reason, object, message, state, lasts: 100, ways }
}

/// Everything was rolled out; then this is done, and there is a new commit.
fn with_commit(before: impl Fn(&mut Stage)) -> Stage {
    let mut stage = Stage::settled(plain(), &FLEET);
    before(&mut stage);
    stage.commit();
    stage
}

fn in_mood(mood: Mood) -> Stage {
    with_commit(|stage| stage.mood("a", mood))
}

fn new_commit(stage: &mut Stage) {
    stage.mend();
    stage.commit();
}

fn new_template(stage: &mut Stage) {
    stage.mend();
    stage.change_template();
}

fn retry(stage: &mut Stage) {
    stage.mend();
    stage.annotate(RETRY, Some("once more"));
}

fn resume(stage: &mut Stage) {
    stage.annotate(PAUSED, None);
}

fn sync_a(stage: &mut Stage) {
    stage.mend();
    stage.sync_by_hand("a");
}

fn skip_a(stage: &mut Stage) {
    let pin = stage.pin("a");
    stage.annotate(SKIP, Some(&format!("a={pin}")));
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = of_turns();
    cases.extend(of_syncs());
    cases.extend(of_reports());
    cases.extend(of_people());
    cases.extend(of_runs());
    cases
}

/// Whose turn has not come.
fn of_turns() -> Vec<Case> {
    vec![
        case(
            Reason::WaitingForStep,
            "c",
            "it is OutOfSync",
            || in_mood(Mood::NeverEnds),
            &[("the earlier step to be done", Stage::mend)],
        ),
        case(
            Reason::WaitingForSlot,
            "b",
            "it is OutOfSync",
            || {
                let mut stage = Stage::settled(json!([{"maxUpdate": 1}, {}]), &FLEET);
                stage.mood("a", Mood::NeverEnds);
                stage.commit();
                stage
            },
            &[("one that is under way to be done", Stage::mend)],
        ),
        case(
            Reason::Soaking,
            "step 1",
            "step 1 must stay healthy until 2023-11-14T23:13:26Z",
            || Stage::new(json!([{"waitDuration": "1h"}, {}]), &FLEET),
            &[("the wait of the step to pass", |stage| stage.pass(3600))],
        ),
        case(
            Reason::InvalidRolloutConfig,
            "step 1",
            "step 1: waitDuration \"soon\" is no duration such as 10m: no later step opens before it is one",
            || Stage::new(json!([{"waitDuration": "soon"}, {}]), &FLEET),
            &[("the field to be mended in the ApplicationSet", |stage| stage.change_steps(plain()))],
        ),
        case(
            Reason::Arming,
            "a",
            "an operation must end before automatic sync is switched off",
            || {
                let mut stage = Stage::new(plain(), &FLEET);
                stage.mood("a", Mood::NeverEnds);
                stage.edit("a", |live| live.automatic = true);
                stage.sync_by_hand("a");
                stage
            },
            &[("automatic sync to be off everywhere", Stage::mend)],
        ),
        case(
            Reason::Leaving,
            "a",
            "it is no longer wanted",
            || {
                let mut stage = in_mood(Mood::NeverEnds);
                stage.pass(10);
                stage.wanted.members.remove("a");
                stage
            },
            &[("its deletion to end", |stage| stage.remove("a"))],
        ),
        case(
            Reason::Leaving,
            "a",
            "it is being deleted",
            || {
                let mut stage = in_mood(Mood::NeverEnds);
                stage.pass(10);
                stage.edit("a", |live| live.terminating = true);
                stage
            },
            &[("its deletion to end", |stage| {
                stage.remove("a");
                // The generators still give it.
                stage.create("a");
            })],
        ),
    ]
}

/// What becomes of an operation.
fn of_syncs() -> Vec<Case> {
    vec![
        case(
            Reason::Progressing,
            "a",
            "an operation is under way: running",
            || in_mood(Mood::NeverEnds),
            &[("its sync to end", Stage::mend)],
        ),
        case(
            Reason::Progressing,
            "a",
            "it is not healthy yet: Deployment web/a: 1 of 2 are up",
            || {
                in_mood(Mood::Reports(|live| {
                    live.health = HealthCode::Progressing;
                    live.ailing = Some("Deployment web/a: 1 of 2 are up".into());
                }))
            },
            &[("its resources to become healthy", Stage::mend)],
        ),
        case(
            Reason::SyncFailed,
            "a",
            "its sync failed: a hook fails",
            || in_mood(Mood::Fails("a hook fails")),
            &[("a new commit", new_commit), ("template", new_template), ("`baton appset retry`", retry)],
        ),
        case(
            Reason::SyncFailed,
            "a",
            "it is not done within the step's progressDeadline: an operation is under way: running",
            || {
                let mut stage = Stage::settled(json!([{"progressDeadline": "1m"}, {}]), &FLEET);
                stage.mood("a", Mood::NeverEnds);
                stage.commit();
                stage
            },
            &[("a new commit", new_commit), ("template", new_template), ("`baton appset retry`", retry)],
        ),
        case(
            Reason::SyncFailed,
            "a",
            "its operation was changed, and synced something else than it was told to",
            || in_mood(Mood::Reports(|live| live.last.iter_mut().for_each(|last| last.full = false))),
            &[("a new commit", new_commit), ("template", new_template), ("`baton appset retry`", retry)],
        ),
        case(
            Reason::TooManyFailures,
            "step 1",
            "more Applications of step 1 failed than it allows",
            || {
                let mut stage = Stage::settled(json!([{"maxFailures": 0}, {}]), &FLEET);
                stage.mood("a", Mood::Fails("a hook fails"));
                stage.commit();
                stage
            },
            &[("a new commit", new_commit), ("template", new_template), ("`baton appset retry`", retry)],
        ),
        case(
            Reason::OutOfSyncAfterSync,
            "a",
            "it differs from its manifests",
            || in_mood(Mood::Reports(|live| live.sync = SyncCode::OutOfSync)),
            &[("the difference to go", Stage::mend), ("ignore the field in ignoreDifferences", new_template)],
        ),
        case(
            Reason::PruneOnly,
            "a",
            "only resources to prune keep it from being Synced",
            || in_mood(Mood::KeepsPrunings),
            &[
                // Whether operations prune is no part of a specification: nothing but the next operation shows it.
                ("`automated.prune: true` in the template and `baton appset retry`", retry),
                ("a sync with prune by hand", sync_a),
            ],
        ),
        case(
            Reason::OrphanedOperation,
            "a",
            "an operation is said to run that nobody carries out",
            || in_mood(Mood::Orphans),
            &[("`baton app sync`", sync_a)],
        ),
        case(
            Reason::SpecRewritten,
            "a",
            "its specification comes back different from what was written",
            || {
                let mut stage = Stage::settled(plain(), &FLEET);
                stage.mood("a", Mood::Rewritten);
                stage.change_template();
                stage.pass(2);
                stage.edit("a", |live| live.spec = Fingerprint::of(["rewritten once more"]));
                stage
            },
            &[
                ("whoever rewrites the Application to stop, then `baton appset retry`", retry),
                ("the field in ignoreApplicationDifferences", |stage| {
                    stage.mend();
                    stage.ignore_the_field();
                }),
            ],
        ),
    ]
}

/// What the Application controller reports, or does not.
fn of_reports() -> Vec<Case> {
    vec![
        Case {
            // After two minutes it has another name.
            lasts: 60,
            ..case(
                Reason::WaitingForRefresh,
                "a",
                "the application controller has not compared it yet",
                || in_mood(Mood::Idle),
                &[("the application controller to compare it", Stage::mend)],
            )
        },
        case(
            Reason::NoReport,
            "a",
            "the application controller has not compared it as it was asked to",
            || in_mood(Mood::Idle),
            &[("the application controller to run", Stage::mend)],
        ),
        case(
            Reason::Degraded,
            "a",
            "it is degraded: Deployment web/a: CrashLoopBackOff",
            || {
                in_mood(Mood::Reports(|live| {
                    live.health = HealthCode::Degraded;
                    live.ailing = Some("Deployment web/a: CrashLoopBackOff".into());
                }))
            },
            &[("its resources to become healthy", Stage::mend), ("a new commit", new_commit)],
        ),
        case(
            Reason::Suspended,
            "a",
            "it is suspended",
            || in_mood(Mood::Reports(|live| live.health = HealthCode::Suspended)),
            &[("somebody to resume the suspended resource", Stage::mend)],
        ),
        case(
            Reason::Missing,
            "a",
            "resources of it are missing",
            || in_mood(Mood::Reports(|live| live.health = HealthCode::Missing)),
            &[("the missing resource", Stage::mend)],
        ),
        case(
            Reason::Missing,
            "a",
            "the Application is not there yet",
            || {
                let mut stage = Stage::new(plain(), &FLEET);
                stage.remove("a");
                stage
            },
            &[("Application to appear", |stage| stage.create("a"))],
        ),
        case(
            Reason::Unknown,
            "a",
            "its sync status is not known",
            || in_mood(Mood::Reports(|live| live.sync = SyncCode::Unknown)),
            &[("the application controller to tell its state", Stage::mend)],
        ),
        case(
            Reason::Unknown,
            "a",
            "its health is not known",
            || in_mood(Mood::Reports(|live| live.health = HealthCode::Unknown)),
            &[("the application controller to tell its state", Stage::mend)],
        ),
        case(
            Reason::InvalidApplication,
            "a",
            "ComparisonError: no such path",
            || in_mood(Mood::Reports(unreadable)),
            &[("the error in its conditions to be mended", Stage::mend)],
        ),
        case(
            Reason::InvalidApplication,
            "a",
            "its name is taken",
            || {
                let mut stage = Stage::new(plain(), &FLEET);
                stage.remove("a");
                stage.wanted.members.get_mut("a").expect("a member").fault = Some("its name is taken".into());
                stage
            },
            &[("the error", |stage| {
                stage.wanted.members.get_mut("a").expect("a member").fault = None;
                stage.create("a");
            })],
        ),
        case(
            Reason::RevisionMismatch,
            "a",
            "it reports commit-0, not commit-2",
            || in_mood(Mood::Reports(|live| live.reported = vec!["commit-0".into()])),
            &[("the application controller to see the revision of this run", Stage::mend)],
        ),
        case(
            Reason::RevisionUnresolved,
            REPOSITORY,
            "https://git.example.com/r.git at \"main\" cannot be resolved: it cannot be reached",
            || {
                let mut stage = Stage::settled(plain(), &FLEET);
                stage.branch = Err("it cannot be reached".to_owned());
                stage.machine.doubt_revisions();
                stage
            },
            &[("the repository to be reachable", Stage::commit)],
        ),
        case(
            Reason::Regressed,
            "a",
            "it differs from its manifests",
            || {
                let mut stage = Stage::settled(json!([{}, {}, {}]), &[("a", 0), ("b", 1), ("c", 2)]);
                stage.mood("b", Mood::NeverEnds);
                stage.commit();
                stage.until("the second step", |stage| stage.machine.head().run.open == 2);
                stage.drift("a");
                stage.until("the drift to be seen", |stage| stage.blocker(Reason::Regressed, "a").is_some());
                stage.mend();
                stage
            },
            &[("`baton app sync`", sync_a), ("`baton appset skip`", skip_a), ("a new commit", Stage::commit)],
        ),
    ]
}

fn unreadable(live: &mut Live) {
    live.error = Some(("ComparisonError".into(), "no such path".into()));
}

/// What people hold, or are asked for.
fn of_people() -> Vec<Case> {
    vec![
        case(
            Reason::Paused,
            "",
            "the rollout is paused",
            || with_commit(|stage| stage.annotate(PAUSED, Some("true"))),
            &[("`baton appset resume`", resume)],
        ),
        case(
            Reason::Aborted,
            "",
            "the run was aborted",
            || {
                let mut stage = in_mood(Mood::NeverEnds);
                stage.pass(10);
                stage.annotate(ABORT, Some("now"));
                stage
            },
            &[("a new commit", new_commit), ("template", new_template), ("`baton appset retry`", retry)],
        ),
        case(
            Reason::HoldStep,
            "a",
            "the step is synced by hand",
            || Stage::new(json!([{"maxUpdate": 0}, {}]), &FLEET),
            &[("`baton app sync`", |stage| {
                stage.sync_by_hand("a");
                stage.sync_by_hand("b");
            })],
        ),
        case(
            Reason::ApprovalRequired,
            "a",
            "waiting for pruning confirmation: v1/Secret",
            || in_mood(Mood::AwaitsApproval),
            // What the annotation that it writes does is tried with the controllers.
            &[("`baton app confirm-deletion`", Stage::mend)],
        ),
        case(
            Reason::DeletionFuse,
            "",
            "generators no longer give 6 of 8 Applications",
            || {
                with_commit(|stage| {
                    stage.wanted.members.remove("a");
                    stage.wanted.fuse = Some("generators no longer give 6 of 8 Applications".into());
                })
            },
            // What the annotation that it writes does is tried with the controllers.
            &[("`baton appset approve-deletion`", |stage| {
                stage.wanted.fuse = None;
                stage.remove("a");
            })],
        ),
        case(
            Reason::SyncWindow,
            "a",
            "windows of project default let nothing be synced now",
            || {
                with_commit(|stage| {
                    let why = "windows of project default let nothing be synced now";
                    stage.edit("a", |live| live.closed = Some(why.into()));
                })
            },
            &[("the window to open", |stage| stage.edit("a", |live| live.closed = None))],
        ),
        case(
            Reason::GeneratorError,
            "",
            "the list is no list",
            || with_commit(|stage| stage.wanted.frozen = Some("the list is no list".into())),
            &[("the error of the ApplicationSet to be mended", |stage| stage.wanted.frozen = None)],
        ),
    ]
}

/// Runs that follow each other.
fn of_runs() -> Vec<Case> {
    vec![
        case(
            Reason::Superseded,
            "",
            "https://git.example.com/r.git at \"main\" is now commit-2, which run 2 is to roll out",
            || with_commit(|stage| stage.annotate(PAUSED, Some("true"))),
            &[("the next run to begin, once nothing else named here holds it", resume)],
        ),
        case(
            Reason::Starved,
            "",
            "the run was begun anew 5 times before it could end",
            || {
                let mut stage = in_mood(Mood::NeverEnds);
                for _ in 0..5 {
                    stage.pass(10);
                    stage.commit();
                }
                stage
            },
            &[
                ("fewer commits", Stage::mend),
                ("the annotation `baton.dev/supersede: Finish`", |stage| {
                    stage.annotate(SUPERSEDE, Some("Finish"));
                    stage.pass(1);
                    stage.commit();
                    stage.pass(10);
                    stage.mend();
                }),
            ],
        ),
    ]
}
