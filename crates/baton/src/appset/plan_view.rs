//! A plan for people: steps as columns, Applications as rows; a list where columns do not fit.

use baton_phases::preview::Preview;
use baton_rollout::plan::{ApplicationPlan, Change, DeletionPlan, Plan, Stage, StepPlan};
use baton_rollout::shift::{Move, Place, Shifts};
use jiff::Timestamp;

use super::plan_phases::{self, Place as Phase, Places};
use super::plan_rows::{More, Row, rows};
use super::revisions::{self, Revision};
use crate::screen::{Cell, Screen, Tone};

/// How many names a line tells before it counts the rest.
const NAMED: usize = 12;
/// How many Applications are named on a terminal that join, leave, change their step, or only their batch.
const MOVES_NAMED: [usize; 4] = [12, 12, 12, 5];

/// A plan, and what it moves against another.
pub(super) struct Shown<'a> {
    /// The set as people call it.
    pub(super) set: &'a str,
    pub(super) name: &'a str,
    pub(super) plan: &'a Plan,
    pub(super) phases: &'a [Preview],
    pub(super) revisions: &'a [Revision],
    /// Against what, and what differs.
    pub(super) against: Option<(&'a str, &'a Shifts)>,
    /// Leave out what stays as it is.
    pub(super) only_changed: bool,
    /// Leave out nothing else.
    pub(super) all: bool,
    pub(super) now: Timestamp,
}

pub(super) fn text(shown: &Shown<'_>, screen: &Screen) -> String {
    let mut parts = vec![title(shown, screen)];
    parts.extend(revisions::text(shown.revisions, shown.now, screen));
    parts.extend(steps(shown.plan, screen));
    parts.extend(plan_phases::text(shown.phases, screen));
    parts.extend(applications(shown, screen));
    parts.extend(deletions(shown, screen));
    parts.extend(teardown(&shown.plan.deletion, screen));
    parts.extend(
        shown
            .against
            .and_then(|(what, shifts)| moved(what, shifts, shown.all || !screen.is_terminal(), screen)),
    );
    parts.extend(remarks(&shown.plan.issues, screen));
    parts.join("\n")
}

fn title(shown: &Shown<'_>, screen: &Screen) -> String {
    let plan = shown.plan;
    let phases = plan_phases::title(shown.phases);
    let (held, total) = (plan_phases::held(shown.phases), plan.applications.len());
    let how = match (plan.steps.len(), &phases) {
        (_, Some(phases)) if plan.strategy != "RollingSync" => format!("in {phases}"),
        (_, None) if plan.strategy != "RollingSync" && held > 0 && held < total => {
            format!("{held} held, the others all at once")
        }
        (_, None) if plan.strategy != "RollingSync" && held > 0 => "nothing would be deployed".to_owned(),
        (_, None) if plan.strategy != "RollingSync" => "all at once".to_owned(),
        (1, _) => "RollingSync in 1 step".to_owned(),
        (count, _) => format!("RollingSync in {count} steps"),
    };
    let how = match phases.filter(|_| plan.strategy == "RollingSync") {
        Some(phases) => format!("{how} and {phases}"),
        None => how,
    };
    let assumed = plan.applications.iter().all(|one| one.change == Change::Assumed);
    let new = plan.applications.iter().filter(|one| one.change == Change::New).count();
    let counts = match (total, assumed) {
        (0, _) => "no Applications".to_owned(),
        (_, true) => format!("{}, as if every one changed", counted(total)),
        (_, false) => {
            let new = if new > 0 { format!(", {new} new") } else { String::new() };
            format!("{} of {} change{new}", plan.changing(), counted(total))
        }
    };
    let leaving = match plan.deletion.leaving {
        0 => String::new(),
        count => format!(", {count} leave"),
    };
    screen.labelled("", &format!("{}: {how}; {counts}{leaving}", shown.set), Tone::Heading, 0)
}

fn counted(count: usize) -> String {
    if count == 1 { "1 Application".to_owned() } else { format!("{count} Applications") }
}

fn steps(plan: &Plan, screen: &Screen) -> Option<String> {
    if plan.steps.is_empty() {
        return None;
    }
    let waits = plan.steps.iter().any(|step| step.wait_duration.is_some());
    let mut headings = vec!["STEP", "APPS", "CHANGE", "AT ONCE", "BATCHES"];
    headings.extend(waits.then_some("WAIT"));
    headings.push("WITH LABELS");
    let row = |step: &StepPlan| {
        let mut row: Vec<Cell> = vec![
            step.step.to_string().into(),
            step.total.to_string().into(),
            step.changing.to_string().into(),
            Cell::toned(at_once(step), if step.held { Tone::Busy } else { Tone::Plain }),
            if step.held { "-".to_owned() } else { step.batches.to_string() }.into(),
        ];
        row.extend(waits.then(|| Cell::from(step.wait_duration.as_deref().unwrap_or("-"))));
        row.push(step.selects.as_str().into());
        row
    };
    let rows: Vec<Vec<Cell>> = plan.steps.iter().map(row).collect();
    let list = || {
        let line = |step: &StepPlan| {
            let label = format!("Step {}", step.step);
            let text = format!(
                "{} of {} change, at once: {}; {}",
                step.changing,
                counted(step.total),
                at_once(step),
                step.selects
            );
            screen.labelled(&label, &text, Tone::Plain, 9)
        };
        plan.steps.iter().map(line).collect()
    };
    Some(screen.table(&headings, &rows, 0).unwrap_or_else(list))
}

fn at_once(step: &StepPlan) -> String {
    match (&step.max_update, step.at_once) {
        _ if step.held => "by hand".to_owned(),
        (Some(text), Some(count)) if text.ends_with('%') => format!("{count} ({text})"),
        (_, Some(count)) => count.to_string(),
        (_, None) => "all".to_owned(),
    }
}

fn applications(shown: &Shown<'_>, screen: &Screen) -> Option<String> {
    let stays = |one: &ApplicationPlan| matches!(one.change, Change::Unchanged);
    let mut all: Vec<&ApplicationPlan> =
        shown.plan.applications.iter().filter(|one| !shown.only_changed || !stays(one)).collect();
    let places = Places::of(shown.phases);
    if shown.plan.steps.is_empty() {
        all.sort_by_key(|one| places.place(one));
    }
    if all.is_empty() {
        return None;
    }
    let unchanged = shown.plan.applications.len() - all.len();
    let rows = rows(&all, &places, screen.is_terminal() && !shown.all);
    let plan = Placed { plan: shown.plan, places };
    let mut out = matrix(&plan, &rows, screen).unwrap_or_else(|| list(&plan, &rows, screen));
    if unchanged > 0 {
        out.push_str(&format!("and {} unchanged\n", counted(unchanged)));
    }
    let hidden: usize = rows.iter().map(Row::hidden).sum();
    if hidden > 0 {
        let text = format!(
            "{hidden} of {} have no row of their own: --all shows them{}",
            counted(all.len()),
            if all.iter().any(|one| stays(one)) { ", --changed only those that change" } else { "" }
        );
        out.push_str(&screen.labelled("", &text, Tone::Quiet, 0));
    }
    Some(out)
}

/// A plan, and the phases of its Applications.
struct Placed<'a> {
    plan: &'a Plan,
    places: Places<'a>,
}

fn matrix(placed: &Placed<'_>, rows: &[Row<'_>], screen: &Screen) -> Option<String> {
    let plan = placed.plan;
    let phased = !placed.places.is_empty() && !plan.steps.is_empty();
    let mut headings = vec!["APPLICATION".to_owned()];
    headings.extend(phased.then(|| "PHASE".to_owned()));
    match plan.steps.is_empty() {
        true => headings.push("WHEN".to_owned()),
        false => headings.extend(plan.steps.iter().map(|step| format!("STEP {}", step.step))),
    }
    headings.push("WHY".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let cells = |row: &Row<'_>| {
        let (name, one, when, why, tone) = row.words(placed);
        let mut cells = vec![Cell::toned(name, if one.is_none() { Tone::Quiet } else { Tone::Plain })];
        let first = row.first().filter(|_| phased);
        cells.extend(first.map(|one| Cell::from(placed.places.place(one).cell())));
        let step = one.or(row.first()).and_then(|one| one.step);
        match plan.steps.is_empty() {
            true => cells.push(Cell::toned(when, tone)),
            false => cells.extend(plan.steps.iter().map(|column| match step == Some(column.step as i64) {
                true => Cell::toned(&when, tone),
                false => Cell::default(),
            })),
        }
        cells.push(Cell::toned(why, tone));
        cells
    };
    screen.table(&headings, &rows.iter().map(cells).collect::<Vec<_>>(), 0)
}

fn list(placed: &Placed<'_>, rows: &[Row<'_>], screen: &Screen) -> String {
    let mut out = String::new();
    let mut last = None;
    let width = |row: &Row<'_>| row.words(placed).0.chars().count();
    // Names are above each other as far as most of them let it be.
    let column = rows.iter().map(width).max().unwrap_or_default().min(36) + 4;
    for row in rows {
        let place = row.first().map_or(Phase::Free, |one| placed.places.place(one));
        let step = row.first().and_then(|one| one.step);
        // Within a step the phase is a word, as it is no order of its own there.
        let group = (step, if step.is_some() { Phase::Free } else { place });
        if last != Some(group) {
            last = Some(group);
            let heading = match step {
                None => place.heading(),
                Some(-1) => "In no step".to_owned(),
                Some(step) => format!("Step {step}"),
            };
            out.push_str(&screen.paint(Tone::Heading, &heading));
            out.push('\n');
        }
        let (name, _, when, why, tone) = row.words(placed);
        let when = match (step, place) {
            (Some(_), Phase::Phase(_, _, phase)) if when != "·" => format!("{when}, phase {phase}"),
            (None, Phase::Phase(..)) if when != "·" => "in its turn".to_owned(),
            _ => when,
        };
        let text = match (when.as_str(), why.as_str()) {
            ("·", why) => why.to_owned(),
            (when, "") => when.to_owned(),
            (when, why) => format!("{when}: {why}"),
        };
        let fits = name.chars().count() + 4 <= column
            && screen.width.is_none_or(|width| column + text.chars().count() <= width);
        if fits {
            out.push_str(&screen.labelled(&format!("  {name}"), &text, tone, column));
        } else {
            out.push_str(&screen.labelled(&format!("  {name}"), "", Tone::Plain, name.chars().count() + 2));
            out.push_str(&screen.labelled("", &text, tone, 6));
        }
    }
    out
}

fn when(one: &ApplicationPlan, placed: &Placed<'_>) -> String {
    let plan = placed.plan;
    // Whoever is held stays as it is, also where nothing would be synced.
    match placed.places.place(one) {
        _ if matches!(one.change, Change::Unchanged | Change::Drift) => return "·".to_owned(),
        Phase::Aside => return "stays".to_owned(),
        Phase::Held => return "held".to_owned(),
        Phase::Phase(_, _, phase) if plan.steps.is_empty() => return format!("phase {phase}"),
        Phase::Phase(..) | Phase::Free => {}
    }
    match (&one.change, one.batch) {
        (Change::Metadata { .. }, _) => "at once".to_owned(),
        (change, _) if !change.syncs() => "·".to_owned(),
        _ if plan.steps.is_empty() => "at once".to_owned(),
        (_, None) => "by hand".to_owned(),
        (_, Some(batch)) => format!("batch {batch}"),
    }
}

fn tone(change: &Change) -> Tone {
    match change {
        Change::New => Tone::Good,
        Change::Spec { .. } | Change::Revision { .. } => Tone::Busy,
        Change::Metadata { .. } | Change::Assumed => Tone::Plain,
        Change::Drift => Tone::Bad,
        Change::Unchanged => Tone::Quiet,
    }
}

fn deletions(shown: &Shown<'_>, screen: &Screen) -> Option<String> {
    let deletion = &shown.plan.deletion;
    let mut out = match deletion.leaving {
        0 => String::new(),
        _ => leaving(shown, deletion, screen),
    };
    if let Some(problem) = &deletion.problem {
        out.push_str(&screen.labelled("", problem, Tone::Bad, 0));
    }
    Some(out).filter(|out| !out.is_empty())
}

fn teardown(deletion: &DeletionPlan, screen: &Screen) -> Option<String> {
    if deletion.order == "AllAtOnce" || deletion.teardown.is_empty() {
        return None;
    }
    let title = format!("If the set is deleted ({}):", deletion.order);
    let title = screen.labelled("", &title, Tone::Heading, 0);
    Some(title + &stages(&deletion.teardown, Tone::Plain, screen))
}

fn leaving(shown: &Shown<'_>, deletion: &DeletionPlan, screen: &Screen) -> String {
    let count = format!(
        "{} of {} {} no longer wanted ({} %)",
        deletion.leaving,
        counted(deletion.total),
        if deletion.leaving == 1 { "is" } else { "are" },
        deletion.percent
    );
    if deletion.kept {
        let text = format!("{count}; the set's policy lets none be deleted: they stay");
        return screen.labelled("", &text, Tone::Heading, 0);
    }
    if deletion.problem.is_some() {
        return screen.labelled("", &format!("{count}; none is deleted:"), Tone::Heading, 0);
    }
    let order = if deletion.order == "AllAtOnce" { "all at once" } else { &deletion.order };
    let mut out =
        screen.labelled("", &format!("{count}; deleted in this order ({order}):"), Tone::Heading, 0);
    out.push_str(&stages(&deletion.stages, Tone::Bad, screen));
    if !deletion.going.is_empty() {
        let text = format!("Being deleted already: {}.", names(&deletion.going));
        out.push_str(&screen.labelled("", &text, Tone::Plain, 2));
    }
    let (text, tone) = verdict(shown, deletion);
    out.push_str(&screen.labelled("", &text, tone, 2));
    out
}

/// What the deletion fuse says, and what a rollout does meanwhile.
fn verdict(shown: &Shown<'_>, deletion: &DeletionPlan) -> (String, Tone) {
    let rolls = !shown.plan.steps.is_empty();
    let share = deletion.verdict.as_ref().map_or("off", |verdict| &verdict.share);
    if let Some(fuse) = &deletion.fuse {
        let also = if rolls { ", and the rollout holds too" } else { "" };
        let text = format!(
            "The deletion fuse would hold: {fuse}. Nothing goes before `baton appset approve-deletion {}`{also}.",
            shown.name
        );
        return (text, Tone::Busy);
    }
    let approved = deletion.verdict.as_ref().is_some_and(|verdict| verdict.says == "Approved");
    let free = match share {
        _ if approved => "A person has approved it.".to_owned(),
        "off" => "The deletion fuse is off.".to_owned(),
        share => format!("The deletion fuse ({share}) lets them go."),
    };
    let gate = if rolls { " A step is not done before those that leave it are gone." } else { "" };
    (format!("{free}{gate}"), Tone::Plain)
}

fn stages(stages: &[Stage], tone: Tone, screen: &Screen) -> String {
    let line = |stage: &Stage| {
        let label = match stage.step {
            None => "  at once".to_owned(),
            Some(-1) => "  in no step".to_owned(),
            Some(step) => format!("  step {step}"),
        };
        let pace = match (stage.at_once, stage.applications.len()) {
            (None, _) | (_, 1) => String::new(),
            (Some(1), _) => "one by one: ".to_owned(),
            (Some(count), _) => format!("{count} at once: "),
        };
        screen.labelled(&label, &format!("{pace}{}", names(&stage.applications)), tone, 14)
    };
    stages.iter().map(line).collect()
}

fn names(all: &[String]) -> String {
    match all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        None => all.join(", "),
        Some(more) => format!("{} and {more} more", all[..NAMED].join(", ")),
    }
}

fn moved(what: &str, shifts: &Shifts, all: bool, screen: &Screen) -> Option<String> {
    if shifts.is_empty() {
        return None;
    }
    let mut out = screen.labelled("", &format!("Against {what}:"), Tone::Heading, 0);
    let names = shifts.applications.iter().map(|shift| &shift.name);
    let settings = shifts.settings.iter().map(|setting| &setting.name);
    let longest = names.chain(settings).map(|name| name.chars().count()).max().unwrap_or_default();
    let column = (longest + 5).min(screen.width.unwrap_or(usize::MAX) / 2);
    for setting in &shifts.settings {
        let text = format!("{} → {}", setting.from, setting.to);
        out.push_str(&screen.labelled(&format!("  {}", setting.name), &text, Tone::Busy, column));
    }
    let mut seen = [0; 4];
    for shift in &shifts.applications {
        let (kind, text, tone) = match &shift.what {
            Move::Joins { to } => (0, format!("joins {}", placed(to)), Tone::Good),
            Move::Leaves { from } => (1, format!("leaves, was in {}", placed(from)), Tone::Bad),
            Move::Step { from, to } => (2, format!("{} → {}", placed(from), placed(to)), Tone::Busy),
            Move::Batch { from, to } => {
                let batch =
                    |place: &Place| place.batch.map_or("by hand".to_owned(), |n| format!("batch {n}"));
                (3, format!("{}, {} → {}", stepped(from), batch(from), batch(to)), Tone::Plain)
            }
        };
        seen[kind] += 1;
        if seen[kind] <= MOVES_NAMED[kind] || all {
            out.push_str(&screen.labelled(&format!("  {}", shift.name), &text, tone, column));
        }
    }
    let whats = ["join", "leave", "change their step", "are in other batches of their steps"];
    let more = seen.iter().zip(MOVES_NAMED).zip(whats).filter(|((seen, named), _)| **seen > *named && !all);
    let more: Vec<String> =
        more.map(|((seen, named), what)| format!("{} more {what}", seen - named)).collect();
    if !more.is_empty() {
        let text = format!("and {}: --all shows them", more.join(", "));
        out.push_str(&screen.labelled("", &text, Tone::Quiet, 2));
    }
    Some(out)
}

fn placed(place: &Place) -> String {
    let step = stepped(place);
    match (place.step, place.batch) {
        (Some(1..), Some(batch)) => format!("{step}, batch {batch}"),
        (Some(1..), None) => format!("{step}, by hand"),
        _ => step,
    }
}

fn stepped(place: &Place) -> String {
    match place.step {
        None => "the set".to_owned(),
        Some(-1) => "no step".to_owned(),
        Some(step) => format!("step {step}"),
    }
}

fn remarks(issues: &[String], screen: &Screen) -> Option<String> {
    let lines: String = issues.iter().map(|issue| screen.labelled("!", issue, Tone::Busy, 2)).collect();
    Some(lines).filter(|lines| !lines.is_empty())
}

// === impl Row ===

impl<'a> Row<'a> {
    fn hidden(&self) -> usize {
        match self {
            Row::One(_) => 0,
            Row::More(more) => more.count,
        }
    }

    fn first(&self) -> Option<&'a ApplicationPlan> {
        match self {
            Row::One(one) => Some(one),
            Row::More(more) => Some(more.first),
        }
    }

    /// Its name, the Application if it is of one, when it goes, why, and how that looks.
    fn words(&self, placed: &Placed<'_>) -> (String, Option<&'a ApplicationPlan>, String, String, Tone) {
        match self {
            Row::One(one) => {
                (one.name.clone(), Some(one), when(one, placed), one.why.clone(), tone(&one.change))
            }
            Row::More(More { count, first, batches, why }) => {
                let when = match batches {
                    Some((from, to)) if from < to && !placed.plan.steps.is_empty() => {
                        format!("batch {from}–{to}")
                    }
                    _ => when(first, placed),
                };
                let why = why.unwrap_or("each for a reason of its own").to_owned();
                (format!("… {count} more"), None, when, why, Tone::Quiet)
            }
        }
    }
}
