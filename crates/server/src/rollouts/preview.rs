//! What a person's word would do, told before it is said. Pure.

use super::action::Action;
use super::board::{Lane, LaneState, Rollout, Target, TargetState};

/// How many Applications are named.
const NAMED: usize = 10;

/// What an action would do to a rollout, a sentence a line. `application` is whom it is for, where it is for one.
pub fn preview(action: Action, rollout: &Rollout, application: &str) -> String {
    let all = || rollout.lanes.iter().flat_map(|lane| lane.targets.iter().flatten());
    let count = |wanted: &[TargetState]| all().filter(|target| wanted.contains(&target.state)).count();
    let under_way = || count(&[TargetState::Progressing]);
    let to_go = || count(&[TargetState::Waiting, TargetState::Pending]);
    let sentences = match action {
        Action::Pause => vec![
            "Nothing more is started, healed or written until somebody resumes it.".to_owned(),
            match under_way() {
                0 => "Nothing is under way.".to_owned(),
                1 => "1 Application under way ends as it does.".to_owned(),
                many => format!("{many} Applications under way end as they do."),
            },
            format!("{} stay as they are meanwhile.", applications(to_go())),
        ],
        Action::Resume => vec![
            "The rollout goes on where it was.".to_owned(),
            format!("{} have yet to go.", applications(to_go())),
        ],
        Action::Abort => vec![
            match rollout.summary.run {
                0 => "The run ends.".to_owned(),
                run => format!("Run {run} ends."),
            },
            "Syncs and calls under way are ended with it, and what is deployed stays.".to_owned(),
            format!(
                "{} keep what they have until a new commit or template begins another run.",
                applications(to_go())
            ),
        ],
        Action::Retry => {
            let failed = all().filter(|target| target.state == TargetState::Failed);
            let meant = match application {
                "" => names(failed.map(|target| target.name.as_str())),
                name => name.to_owned(),
            };
            let meant = if meant.is_empty() { "What failed".to_owned() } else { meant };
            vec![format!("Tried again: {meant}."), "What is done already is not touched.".to_owned()]
        }
        Action::Skip => vec![
            format!("{application} counts as done for what this run asks of it, and no longer."),
            "Nothing of it is changed, and no good state is kept of it.".to_owned(),
        ],
        Action::Advance => meant(action, rollout).map(advanced).collect(),
        Action::Rollback | Action::RollbackAll => {
            let mut told: Vec<String> = meant(action, rollout).map(put_back).collect();
            told.push("Specification and commit are restored, not data.".to_owned());
            told
        }
        Action::ApproveDeletion => vec![
            held(rollout),
            "Exactly this deletion is approved, once: if more Applications vanish meanwhile, it is asked again."
                .to_owned(),
        ],
    };
    sentences.join("\n")
}

/// The lanes that an offered action is for.
fn meant(action: Action, rollout: &Rollout) -> impl Iterator<Item = &Lane> {
    let offer = rollout.actions.iter().find(move |offer| offer.action == action.as_str());
    let ids = offer.into_iter().flat_map(|offer| &offer.lanes);
    ids.filter_map(|id| rollout.lanes.iter().find(|lane| lane.id == *id))
}

fn advanced(lane: &Lane) -> String {
    let place = place(lane);
    match lane.state {
        LaneState::Failed => format!("{place} is passed over, with what failed in it left as it is."),
        _ => format!("{place} ends its wait now."),
    }
}

fn put_back(lane: &Lane) -> String {
    let changed = |target: &&Target| !matches!(target.state, TargetState::Waiting | TargetState::Pending);
    let targets = lane.targets.iter().flatten().filter(changed);
    let whom = match names(targets.map(|target| target.name.as_str())) {
        whom if whom.is_empty() => applications(lane.counts.total - lane.counts.waiting),
        whom => whom,
    };
    format!("What {} has changed goes back to its last good state, in reverse order: {whom}.", place(lane))
}

/// A phase with its generator, which its id names.
fn place(lane: &Lane) -> String {
    match lane.id.split('-').nth(1) {
        Some(generator) if lane.kind == "phase" => format!("Phase {} of generator {generator}", lane.title),
        _ => lane.title.clone(),
    }
}

/// What the fuse says while it holds, without how to approve it by hand.
fn held(rollout: &Rollout) -> String {
    let kind = baton_api::conditions::application_set::DELETION_HELD;
    let held = rollout.conditions.iter().find(|one| one.kind == kind && one.status == "True");
    let message = held.map(|held| held.message.split("; approve").next().unwrap_or_default());
    message.unwrap_or_default().to_owned()
}

fn applications(count: usize) -> String {
    if count == 1 { "1 Application".to_owned() } else { format!("{count} Applications") }
}

fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<&str> = names.collect();
    let named = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
