//! How a rollout stands, for people: steps with their progress, Applications, and what is waited for.

use baton_rollout::explain::{ApplicationStanding, DeletionStanding, Obstacle, Standing, StepStanding};
use jiff::Timestamp;

use crate::screen::{Cell, Screen, Tone, span};

/// Where texts begin beside their labels.
pub(super) const COLUMN: usize = 12;
/// How wide the bar of a step is, and how wide where there is little room.
const BAR: [usize; 2] = [20, 10];
/// Columns from which on there is much room.
const MUCH: usize = 100;
/// How many names a line tells before it counts the rest.
const NAMED: usize = 8;

/// The run in one line, and a deletion in another.
pub(super) fn summary(standing: &Standing, now: Timestamp, screen: &Screen) -> String {
    let (done, total) = standing.counts();
    let steps = standing.steps.iter().filter(|step| step.step > 0).count();
    let mut words = vec![standing.state.clone()];
    if standing.run > 0 {
        words.push(format!("run {}", standing.run));
    }
    if standing.step > 0 && standing.finished_at.is_none() && done < total {
        words.push(format!("step {} of {steps}", standing.step));
    }
    if total > 0 {
        words.push(format!("{done} of {total} done"));
    }
    match (standing.started_at, standing.finished_at) {
        (Some(from), Some(to)) => words.push(format!("took {}, ended {} ago", span(from, to), span(to, now))),
        (Some(from), None) => words.push(format!("began {} ago", span(from, now))),
        _ => {}
    }
    match standing.restarts {
        0 => {}
        1 => words.push("begun anew once".to_owned()),
        count => words.push(format!("begun anew {count} times")),
    }
    if standing.outdated && standing.deletion.is_none() {
        words.push("the set has changed since".to_owned());
    }
    let mut out = String::new();
    // A set without steps may still delete.
    if steps > 0 || standing.run > 0 {
        let tone = state_tone(&standing.state);
        out.push_str(&screen.labelled("Rollout:", &words.join(", "), tone, COLUMN));
    }
    if let Some(deletion) = &standing.deletion {
        out.push_str(&screen.labelled("Deletion:", &deletion_words(deletion, now), Tone::Bad, COLUMN));
    }
    out
}

fn deletion_words(deletion: &DeletionStanding, now: Timestamp) -> String {
    let what = if deletion.of_the_set { "the set goes" } else { "Applications go" };
    let mut words = vec![format!("{what} ({})", deletion.order)];
    if deletion.total_steps > 0 {
        words.push(format!("step {} of {}", deletion.step, deletion.total_steps));
    }
    words.push(format!("{} left", deletion.remaining));
    if let Some(from) = deletion.started_at {
        words.push(format!("began {} ago", span(from, now)));
    }
    if !deletion.deleting.is_empty() {
        words.push(format!("now {}", names(&deletion.deleting)));
    }
    words.join(", ")
}

fn names(all: &[String]) -> String {
    match all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        None => all.join(", "),
        Some(more) => format!("{} and {more} more", all[..NAMED].join(", ")),
    }
}

/// One wait: what for, since when, what ends it, when it is looked at again.
pub(super) fn obstacle(label: &str, obstacle: &Obstacle, now: Timestamp, screen: &Screen) -> String {
    let tone = reason_tone(&obstacle.reason);
    let mut out = screen.labelled(label, &obstacle_words(obstacle, now), tone, COLUMN);
    if !obstacle.unblocks.is_empty() {
        out.push_str(&screen.labelled("", &format!("ends with {}", obstacle.unblocks), Tone::Plain, COLUMN));
    }
    if let Some(at) = obstacle.next_look {
        let when = if at > now { format!("in {}", span(now, at)) } else { "due now".to_owned() };
        out.push_str(&screen.labelled("", &format!("next look {when}"), Tone::Quiet, COLUMN));
    }
    out
}

pub(super) fn obstacle_words(obstacle: &Obstacle, now: Timestamp) -> String {
    let mut words = obstacle.reason.clone();
    if !obstacle.object.is_empty() {
        words.push(' ');
        words.push_str(&obstacle.object);
    }
    match (obstacle.object.is_empty(), obstacle.count) {
        (_, ..=1) => {}
        // What holds them all is none of them.
        (true, count) => words.push_str(&format!(" ({count} wait)")),
        (false, count) => words.push_str(&format!(" and {} more", count - 1)),
    }
    if let Some(since) = obstacle.since {
        words.push_str(&format!(" for {}", span(since, now)));
    }
    if !obstacle.message.is_empty() {
        words.push_str(&format!(": {}", obstacle.message));
    }
    words
}

/// The steps and how far each is.
pub(super) fn steps(all: &[StepStanding], now: Timestamp, screen: &Screen) -> String {
    let headings = ["STEP", "STATE", "PROGRESS", "DONE", "BUSY", "FAILED", "AT ONCE", "SINCE"];
    let bar_width = if screen.width.is_some_and(|width| width < MUCH) { BAR[1] } else { BAR[0] };
    let rows: Vec<Vec<Cell>> = all.iter().map(|step| row(step, now, bar_width)).collect();
    if rows.is_empty() {
        return String::new();
    }
    screen.table(&headings, &rows, 0).unwrap_or_else(|| {
        let line = |step: &StepStanding| {
            let label = if step.step > 0 { format!("Step {}", step.step) } else { "No step".to_owned() };
            let text =
                format!("{}, {} of {} done, {} busy", step.state, step.done, step.total, step.updating);
            screen.labelled(&label, &text, state_tone(&step.state), 9)
        };
        all.iter().map(line).collect()
    })
}

fn row(step: &StepStanding, now: Timestamp, bar_width: usize) -> Vec<Cell> {
    let tone = state_tone(&step.state);
    let since = match (step.completed_at, step.wait_until, step.opened_at) {
        (_, Some(until), _) if until > now => format!("{} to wait", span(now, until)),
        (Some(at), _, _) => format!("done {} ago", span(at, now)),
        (_, _, Some(at)) if step.state != "Complete" => format!("open {}", span(at, now)),
        _ => String::new(),
    };
    vec![
        if step.step > 0 { step.step.to_string() } else { "-".to_owned() }.into(),
        Cell::toned(&step.state, tone),
        Cell::toned(bar(step, bar_width), tone),
        format!("{}/{}", step.done, step.total).into(),
        number(step.updating).into(),
        Cell::toned(number(step.failed), if step.failed > 0 { Tone::Bad } else { Tone::Plain }),
        match step.at_once {
            None => "all".to_owned(),
            Some(0) => "by hand".to_owned(),
            Some(count) => count.to_string(),
        }
        .into(),
        since.into(),
    ]
}

fn number(count: i64) -> String {
    if count == 0 { "-".to_owned() } else { count.to_string() }
}

/// Done, under way, and left. The end is drawn only when it is reached.
fn bar(step: &StepStanding, width: usize) -> String {
    let total = step.total.max(0) as u128;
    let share = |count: i64| {
        let part = (count.max(0) as u128).min(total) * width as u128;
        part.checked_div(total).unwrap_or_default() as usize
    };
    let done = if total == 0 { width } else { share(step.done) };
    let busy = share(step.done.saturating_add(step.updating)).saturating_sub(done);
    let busy = if step.updating > 0 && busy == 0 && done < width { 1 } else { busy };
    format!("{}{}{}", "█".repeat(done), "▒".repeat(busy), "░".repeat(width - done - busy))
}

/// A line that must not be folded.
pub(super) fn cut_to(text: &str, screen: &Screen) -> String {
    screen.width.map_or_else(|| text.to_owned(), |width| crate::screen::cut(text, width))
}

/// Applications as rows, steps as columns; with a column for the step where columns do not fit.
pub(super) fn applications(
    all: &[&ApplicationStanding],
    steps: &[i64],
    now: Timestamp,
    screen: &Screen,
) -> String {
    let since = |one: &ApplicationStanding| one.since.map(|at| span(at, now)).unwrap_or_default();
    let status = |one: &ApplicationStanding| Cell::toned(&one.status, status_tone(one));
    let waits = |one: &ApplicationStanding| {
        let words = one.first.as_ref().map(|first| first_words(first, &one.name)).unwrap_or_default();
        Cell::toned(words, one.first.as_ref().map_or(Tone::Plain, |first| reason_tone(&first.reason)))
    };
    let mut headings = vec!["APPLICATION".to_owned()];
    headings.extend(steps.iter().map(|step| format!("STEP {step}")));
    headings.extend(["SINCE".to_owned(), "WAITS FOR".to_owned()]);
    let matrix = |one: &&ApplicationStanding| {
        let mut row = vec![Cell::from(&one.name)];
        let cell = |step: &i64| if *step == one.step { status(one) } else { Cell::default() };
        row.extend(steps.iter().map(cell));
        row.extend([since(one).into(), waits(one)]);
        row
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(matrix).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    if let Some(table) = screen.roomy(&headings, &rows, 0) {
        return table;
    }
    let plain = |one: &&ApplicationStanding| {
        let step = if one.step > 0 { one.step.to_string() } else { "-".to_owned() };
        vec![Cell::from(&one.name), step.into(), status(one), since(one).into(), waits(one)]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(plain).collect();
    screen.table(&["APPLICATION", "STEP", "STATUS", "SINCE", "WAITS FOR"], &rows, 0).unwrap_or_else(|| {
        let line = |one: &&ApplicationStanding| {
            let name = screen.labelled("", &one.name, Tone::Plain, 0);
            let step = if one.step > 0 { format!("step {}", one.step) } else { "no step".to_owned() };
            let words = one.first.as_ref().map(|first| first_words(first, &one.name)).unwrap_or_default();
            let text = format!("{step}, {} {}; {words}", one.status, since(one));
            name + &screen.labelled("", text.trim_end_matches("; "), status_tone(one), 4)
        };
        all.iter().map(line).collect()
    })
}

/// A wait beside the Application it is of.
pub(super) fn first_words(first: &Obstacle, of: &str) -> String {
    let object = if first.object.is_empty() || first.object == of { "" } else { first.object.as_str() };
    let words = match (object, first.message.as_str()) {
        ("", "") => String::new(),
        (object, "") => object.to_owned(),
        // Such a message names its object itself.
        (_, message) => message.to_owned(),
    };
    if words.is_empty() { first.reason.clone() } else { format!("{}: {words}", first.reason) }
}

pub(super) fn state_tone(state: &str) -> Tone {
    match state {
        "Complete" | "Healthy" => Tone::Good,
        "Progressing" | "Open" | "Arming" | "Soaking" | "Paused" | "Pending" => Tone::Busy,
        "Failed" | "Aborted" => Tone::Bad,
        "Waiting" | "Idle" => Tone::Quiet,
        _ => Tone::Plain,
    }
}

pub(super) fn status_tone(one: &ApplicationStanding) -> Tone {
    let reason = one.first.as_ref().map(|first| reason_tone(&first.reason));
    reason.filter(|tone| *tone == Tone::Bad).unwrap_or_else(|| state_tone(&one.status))
}

pub(super) fn reason_tone(reason: &str) -> Tone {
    match reason {
        "Progressing" | "Soaking" | "Arming" | "WaitingForRefresh" | "Leaving" | "Superseded" => Tone::Busy,
        "WaitingForStep" | "WaitingForSlot" => Tone::Quiet,
        "Paused" | "HoldStep" | "ApprovalRequired" | "SyncWindow" | "DeletionFuse" | "PhaseGate"
        | "Suspended" => Tone::Busy,
        _ => Tone::Bad,
    }
}
