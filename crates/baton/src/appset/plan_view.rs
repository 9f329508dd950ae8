//! A plan for people: steps as columns, Applications as rows; a list where columns do not fit.

use baton_rollout::plan::{ApplicationPlan, Change, DeletionPlan, Plan, Stage, StepPlan};
use baton_rollout::shift::{Move, Place, Shifts};

use super::screen::{Cell, Screen, Tone};

/// How many names a line tells before it counts the rest.
const NAMED: usize = 12;
/// How many Applications that only change their batch are named.
const BATCHES_NAMED: usize = 5;

/// A plan, and what it moves against another.
pub(super) struct Shown<'a> {
    /// The set as people call it.
    pub(super) set: &'a str,
    pub(super) name: &'a str,
    pub(super) plan: &'a Plan,
    /// Against what, and what differs.
    pub(super) against: Option<(&'a str, &'a Shifts)>,
    /// Leave out what stays as it is.
    pub(super) only_changed: bool,
}

pub(super) fn text(shown: &Shown<'_>, screen: &Screen) -> String {
    let mut parts = vec![title(shown, screen)];
    parts.extend(steps(shown.plan, screen));
    parts.extend(applications(shown, screen));
    parts.extend(deletions(shown, screen));
    parts.extend(teardown(&shown.plan.deletion, screen));
    parts.extend(shown.against.and_then(|(what, shifts)| moved(what, shifts, screen)));
    parts.extend(remarks(&shown.plan.issues, screen));
    parts.join("\n")
}

fn title(shown: &Shown<'_>, screen: &Screen) -> String {
    let plan = shown.plan;
    let how = match plan.steps.len() {
        _ if plan.strategy != "RollingSync" => "all at once".to_owned(),
        1 => "RollingSync in 1 step".to_owned(),
        count => format!("RollingSync in {count} steps"),
    };
    let total = plan.applications.len();
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
    let all: Vec<&ApplicationPlan> =
        shown.plan.applications.iter().filter(|one| !shown.only_changed || !stays(one)).collect();
    if all.is_empty() {
        return None;
    }
    let hidden = shown.plan.applications.len() - all.len();
    let mut out = matrix(shown.plan, &all, screen).unwrap_or_else(|| list(shown.plan, &all, screen));
    if hidden > 0 {
        out.push_str(&format!("and {} unchanged\n", counted(hidden)));
    }
    Some(out)
}

fn matrix(plan: &Plan, all: &[&ApplicationPlan], screen: &Screen) -> Option<String> {
    let mut headings = vec!["APPLICATION".to_owned()];
    match plan.steps.is_empty() {
        true => headings.push("WHEN".to_owned()),
        false => headings.extend(plan.steps.iter().map(|step| format!("STEP {}", step.step))),
    }
    headings.push("WHY".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let row = |one: &&ApplicationPlan| {
        let mut row = vec![Cell::from(&one.name)];
        match plan.steps.is_empty() {
            true => row.push(Cell::toned(when(one, plan), tone(&one.change))),
            false => row.extend(plan.steps.iter().map(|step| match one.step == Some(step.step as i64) {
                true => Cell::toned(when(one, plan), tone(&one.change)),
                false => Cell::default(),
            })),
        }
        row.push(Cell::toned(&one.why, tone(&one.change)));
        row
    };
    screen.table(&headings, &all.iter().map(row).collect::<Vec<_>>(), 0)
}

fn list(plan: &Plan, all: &[&ApplicationPlan], screen: &Screen) -> String {
    let mut out = String::new();
    let mut last = None;
    for one in all {
        if last != Some(one.step) {
            last = Some(one.step);
            let heading = match one.step {
                None => "All at once".to_owned(),
                Some(-1) => "In no step".to_owned(),
                Some(step) => format!("Step {step}"),
            };
            out.push_str(&screen.paint(Tone::Heading, &heading));
            out.push('\n');
        }
        let when = when(one, plan);
        let text = if when == "·" { one.why.clone() } else { format!("{when}: {}", one.why) };
        let column = (one.name.chars().count() + 4).max(24);
        if screen.width.is_some_and(|width| column + text.chars().count() > width) {
            out.push_str(&screen.labelled(&format!("  {}", one.name), "", Tone::Plain, column));
            out.push_str(&screen.labelled("", &text, tone(&one.change), 6));
        } else {
            out.push_str(&screen.labelled(&format!("  {}", one.name), &text, tone(&one.change), column));
        }
    }
    out
}

fn when(one: &ApplicationPlan, plan: &Plan) -> String {
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
        _ => leaving(shown.name, deletion, screen),
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

fn leaving(name: &str, deletion: &DeletionPlan, screen: &Screen) -> String {
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
    if let Some(fuse) = &deletion.fuse {
        let text = format!(
            "The deletion fuse would hold: {fuse}. Nothing goes before `baton appset approve-deletion {name}`."
        );
        out.push_str(&screen.labelled("", &text, Tone::Busy, 2));
    }
    out
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

fn moved(what: &str, shifts: &Shifts, screen: &Screen) -> Option<String> {
    if shifts.is_empty() {
        return None;
    }
    let mut out = screen.labelled("", &format!("Against {what}:"), Tone::Heading, 0);
    let batches = shifts.applications.iter().filter(|shift| matches!(shift.what, Move::Batch { .. })).count();
    let names = shifts.applications.iter().map(|shift| &shift.name);
    let settings = shifts.settings.iter().map(|setting| &setting.name);
    let longest = names.chain(settings).map(|name| name.chars().count()).max().unwrap_or_default();
    let column = (longest + 5).min(screen.width.unwrap_or(usize::MAX) / 2);
    let mut seen = 0;
    for setting in &shifts.settings {
        let text = format!("{} → {}", setting.from, setting.to);
        out.push_str(&screen.labelled(&format!("  {}", setting.name), &text, Tone::Busy, column));
    }
    for shift in &shifts.applications {
        let (text, tone) = match &shift.what {
            Move::Joins { to } => (format!("joins {}", placed(to)), Tone::Good),
            Move::Leaves { from } => (format!("leaves, was in {}", placed(from)), Tone::Bad),
            Move::Step { from, to } => (format!("{} → {}", placed(from), placed(to)), Tone::Busy),
            Move::Batch { from, to } => {
                seen += 1;
                if seen > BATCHES_NAMED {
                    continue;
                }
                let batch =
                    |place: &Place| place.batch.map_or("by hand".to_owned(), |n| format!("batch {n}"));
                (format!("{}, {} → {}", stepped(from), batch(from), batch(to)), Tone::Plain)
            }
        };
        out.push_str(&screen.labelled(&format!("  {}", shift.name), &text, tone, column));
    }
    if batches > BATCHES_NAMED {
        let text = format!("and {} more in other batches of their steps", batches - BATCHES_NAMED);
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
