//! `baton appset explain`: what a rollout waits for.

use std::collections::BTreeMap;

use baton_rollout::explain::{ApplicationStanding, Obstacle, Standing};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::picture::Picture;
use super::sets::Sets;
use super::standing_view::{self as view, COLUMN};
use super::{control, owned, phase_view};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;
use crate::screen::{Screen, Tone};

/// How many Applications are shown unless all are asked for.
const SHOWN: usize = 20;
/// How many of those that wait for the same.
const ALIKE: usize = 3;

/// What to explain.
#[derive(Debug, Args)]
#[command(
    after_help = "Each wait is named: what is waited for and since when, what ends it, and when it is looked at again though \
nothing happens.

Exit codes: 0 told; 1 usage; 3 the set has no rollout, or no such Application; 20 no such set, or the API refused or cannot \
be reached.

Examples:
  baton appset explain web                the run, its steps and phases, and who is not done
  baton appset explain web web-prod-eu    one Application
  baton appset explain web -o json"
)]
pub(crate) struct Arguments {
    /// The ApplicationSet.
    set: String,
    /// One of its Applications.
    application: Option<String>,
    /// Show every Application that is not done.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    place: Place,
    /// How to print it; without it for people.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let sets = Sets::at(&arguments.place).await?;
    let set = sets.set(&arguments.set).await?;
    let head = sets.head(&set).await;
    let mut picture = Picture::of(&set, head.as_ref(), &BTreeMap::new());
    let mut known = BTreeMap::new();
    if arguments.application.is_some() || picture.standing.has_leavers() {
        known = owned::known(&sets.applications(&set).await?);
        picture = Picture::of(&set, head.as_ref(), &known);
    }
    let standing = &picture.standing;
    control::has_something_to_tell(&set, standing)?;
    let (now, screen) = (Timestamp::now(), Screen::of_stdout());
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let name = format!("{namespace}/{}", arguments.set);
    match &arguments.application {
        None => show(arguments.output, &picture, || run_text(&name, &picture, arguments.all, now, &screen)),
        Some(wanted) => {
            let one = standing.applications.iter().find(|one| one.name == *wanted).ok_or_else(|| {
                let set = &arguments.set;
                Failure::failed(match known.contains_key(wanted) {
                    true => format!(
                        "{wanted} is an Application of {set}, whose status does not tell of it; `baton app get {wanted}` \
                         does"
                    ),
                    false => format!(
                        "the status of {set} knows no Application {wanted}; `baton appset get {set} --all` shows those it has"
                    ),
                })
            })?;
            show(arguments.output, one, || application_text(one, &picture, now, &screen))
        }
    }
}

fn show(
    output: Option<Output>,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let whole = || serde_json::to_value(value).map_err(|error| Failure::failed(error.to_string()));
    print::out(&match output {
        None => text(),
        Some(Output::Json) => print::json(&[whole()?], true)?,
        Some(Output::Yaml) => print::yaml(&[whole()?])?,
    })
}

pub(super) fn run_text(name: &str, picture: &Picture, all: bool, now: Timestamp, screen: &Screen) -> String {
    let standing = &picture.standing;
    let mut out = screen.labelled("Set:", name, Tone::Heading, COLUMN);
    out.push_str(&view::summary(standing, now, screen));
    if !standing.message.is_empty() && !is_said(&standing.message, standing.first.as_ref()) {
        out.push_str(&screen.labelled("Message:", &standing.message, Tone::Plain, COLUMN));
    }
    for remark in &standing.remarks {
        out.push_str(&screen.labelled("Remark:", remark, Tone::Busy, COLUMN));
    }
    for revision in &standing.revisions {
        let text = format!("{} {} = {}", revision.repo, revision.target_revision, revision.revision);
        out.push_str(&screen.labelled("Revision:", &text, Tone::Plain, COLUMN));
    }
    out.push_str(&waits(standing, now, screen));
    let steps = if picture.steps { view::steps(&standing.steps, now, screen) } else { String::new() };
    let phases = phase_view::generators(&picture.phases, now, screen);
    for part in [steps, phases].iter().filter(|part| !part.is_empty()) {
        out.push('\n');
        out.push_str(part);
    }
    let mut undone: Vec<&ApplicationStanding> =
        standing.applications.iter().filter(|one| one.first.is_some()).collect();
    if !all && undone.len() > SHOWN {
        // Those that wait for others say the least.
        undone.sort_by_key(|one| one.first.as_ref().is_some_and(Obstacle::is_queueing));
    }
    if !undone.is_empty() {
        let few = all || undone.len() <= SHOWN;
        let (shown, rest) = if few { (undone, Vec::new()) } else { first_of_each(undone) };
        let numbers: Vec<i64> =
            standing.steps.iter().map(|step| step.step).filter(|step| *step > 0).collect();
        out.push('\n');
        out.push_str(&match picture.steps {
            true => view::applications(&shown, &numbers, now, screen),
            false => phase_view::applications(&shown, picture, now, screen),
        });
        if !rest.is_empty() {
            let text =
                format!("and {} more that are not done ({}): --all shows them", rest.len(), reasons(&rest));
            out.push_str(&screen.labelled("", &text, Tone::Quiet, 0));
        }
    }
    out
}

/// A few of those that wait for the same, and the rest.
fn first_of_each(all: Vec<&ApplicationStanding>) -> (Vec<&ApplicationStanding>, Vec<&ApplicationStanding>) {
    let mut seen: BTreeMap<(i64, &str, &str), usize> = BTreeMap::new();
    let mut room = SHOWN;
    all.into_iter().partition(|one| {
        let wait =
            one.first.as_ref().map_or(("", ""), |first| (first.reason.as_str(), first.message.as_str()));
        let count = seen.entry((one.step, wait.0, wait.1)).or_default();
        *count += 1;
        let shown = *count <= ALIKE && room > 0;
        room -= usize::from(shown);
        shown
    })
}

/// How many wait for what.
fn reasons(all: &[&ApplicationStanding]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for first in all.iter().filter_map(|one| one.first.as_ref()) {
        *counts.entry(&first.reason).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

/// Whether the wait that follows says the same.
fn is_said(message: &str, first: Option<&Obstacle>) -> bool {
    first.is_some_and(|first| first.says(message))
}

/// The first wait in full, further ones in a line each.
fn waits(standing: &Standing, now: Timestamp, screen: &Screen) -> String {
    let Some(first) = &standing.first else {
        let text = if standing.deletion.is_some() { "the Applications to be gone" } else { "nothing" };
        return screen.labelled("Waits for:", text, Tone::Good, COLUMN);
    };
    let mut out = view::obstacle("Waits for:", first, now, screen);
    let of_deletion = standing.deletion.iter().flat_map(|deletion| &deletion.obstacles);
    for more in standing.obstacles.iter().chain(of_deletion).filter(|more| *more != first) {
        let tone = view::reason_tone(&more.reason);
        out.push_str(&screen.labelled("and for:", &view::obstacle_words(more, now), tone, COLUMN));
    }
    out
}

pub(super) fn application_text(
    one: &ApplicationStanding,
    picture: &Picture,
    now: Timestamp,
    screen: &Screen,
) -> String {
    let standing = &picture.standing;
    let mut out = screen.labelled("Name:", &one.name, Tone::Heading, COLUMN);
    let line = |label: &str, text: &str, tone: Tone| screen.labelled(label, text, tone, COLUMN);
    let steps = standing.steps.iter().filter(|step| step.step > 0).count();
    let step = if one.step > 0 { format!("{} of {steps}", one.step) } else { "none".to_owned() };
    if picture.steps {
        out.push_str(&line("Step:", &step, Tone::Plain));
    }
    if let Some((at, phase)) = picture.phase(&one.name) {
        out.push_str(&line("Phase:", &format!("{phase} ({})", at + 1), Tone::Plain));
    }
    let since = one.since.map(|at| format!(" for {}", crate::screen::span(at, now))).unwrap_or_default();
    out.push_str(&line("Status:", &format!("{}{since}", one.status), view::state_tone(&one.status)));
    if !one.message.is_empty() && !is_said(&one.message, one.first.as_ref()) {
        out.push_str(&line("Message:", &one.message, Tone::Plain));
    }
    if !one.target_revisions.is_empty() {
        out.push_str(&line("Revisions:", &one.target_revisions.join(", "), Tone::Plain));
    }
    if let Some(record) = &one.record {
        let mut words = vec![format!("pin {}", record.pin)];
        words.push(if record.writes == 1 {
            "1 write".to_owned()
        } else {
            format!("{} writes", record.writes)
        });
        words.extend(record.last.map(|last| format!("last: {last}")));
        words.extend(record.slot.then(|| "holds a slot of its step".to_owned()));
        words.extend(record.done.map(|done| format!("done: {done}")));
        out.push_str(&line("Record:", &words.join(", "), Tone::Plain));
    }
    match &one.first {
        None => out.push_str(&line("Waits for:", "nothing", Tone::Good)),
        Some(first) => {
            out.push_str(&view::obstacle("Waits for:", first, now, screen));
            // A step or a slot is waited for because of something else.
            let behind = standing.first.as_ref().filter(|behind| *behind != first);
            if let Some(behind) = behind.filter(|_| first.reason.starts_with("WaitingFor")) {
                out.push_str(&view::obstacle("behind it:", behind, now, screen));
            }
        }
    }
    out
}
