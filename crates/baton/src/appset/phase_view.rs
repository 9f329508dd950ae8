//! How far phases are, for people.

use baton_api::phase_status::{GeneratorPhases, PhaseState, PhaseStatus};
use baton_phases::standing;
use baton_rollout::explain::ApplicationStanding;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::picture::Picture;
use super::standing_view::{COLUMN, first_words, reason_tone, state_tone, status_tone};
use crate::screen::{Cell, Screen, Tone, span};

/// How wide the bar of a phase is.
const BAR: usize = 10;
/// Columns from which on there is room for it.
const MUCH: usize = 100;
/// How many names a line tells before it counts the rest.
const NAMED: usize = 5;

/// Every generator with its phases, and what has failed.
pub(super) fn generators(phases: &[GeneratorPhases], now: Timestamp, screen: &Screen) -> String {
    let each: Vec<String> = phases.iter().map(|generator| whole(generator, now, screen)).collect();
    each.join("\n")
}

fn whole(generator: &GeneratorPhases, now: Timestamp, screen: &Screen) -> String {
    let mut out = head(generator, now, screen);
    if !generator.message.is_empty() {
        out.push_str(&screen.labelled("Message:", &generator.message, Tone::Plain, COLUMN));
    }
    if generator.unassigned_count > 0 {
        let some = generator.unassigned.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let text = match usize::try_from(generator.unassigned_count).unwrap_or(0).saturating_sub(NAMED) {
            0 => some,
            more => format!("{some} and {more} more"),
        };
        let text = format!("{text}: left as they are");
        out.push_str(&screen.labelled("No phase:", &text, Tone::Busy, COLUMN));
    }
    out.push('\n');
    out.push_str(&table(&generator.phases, now, screen));
    for (phase, failure) in generator.phases.iter().filter_map(|phase| Some((phase, phase.failure.as_ref()?)))
    {
        let text = format!("{}: {} ({})", phase.name, failure.message, failure.reason);
        out.push_str(&screen.labelled("Failed:", &text, Tone::Bad, COLUMN));
        if !failure.remedy.is_empty() {
            out.push_str(&screen.labelled("Remedy:", &failure.remedy, Tone::Plain, COLUMN));
        }
        if !failure.not_rolled_back.is_empty() {
            let text = format!("no good state is known of {}", failure.not_rolled_back.join(", "));
            out.push_str(&screen.labelled("Not put back:", &text, Tone::Bad, COLUMN + 3));
        }
    }
    out
}

/// A generator in one line.
pub(super) fn head(generator: &GeneratorPhases, now: Timestamp, screen: &Screen) -> String {
    let state = generator.state.as_str();
    let mut words = vec![format!("{} ({})", generator.generator, generator.generator_type), state.to_owned()];
    if generator.current_phase < generator.total_phases {
        words.push(format!("phase {} of {}", generator.current_phase + 1, generator.total_phases));
    }
    words.extend(times(&generator.started_at, &generator.finished_at, now));
    screen.labelled("Generator:", &words.join(", "), phase_tone(&generator.state), COLUMN)
}

/// Phases with how far each is, and what it waits for.
pub(super) fn table(phases: &[PhaseStatus], now: Timestamp, screen: &Screen) -> String {
    let bars = screen.width.is_none_or(|width| width >= MUCH);
    let mut headings = vec!["PHASE", "STATE"];
    headings.extend(bars.then_some("PROGRESS"));
    headings.extend(["DONE", "FAILED", "HOOKS", "WAITS FOR"]);
    let rows: Vec<Vec<Cell>> = phases.iter().map(|phase| row(phase, bars, now)).collect();
    screen.table(&headings, &rows, 0).unwrap_or_else(|| {
        let column = phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or(0) + 2;
        let line = |phase: &PhaseStatus| {
            let waits = standing::waits(phase, now);
            let waits = if waits.is_empty() { waits } else { format!("; waits for {waits}") };
            let state = phase.state.as_str();
            let text = format!("{state}, {} of {} done{waits}", phase.healthy, phase.selected);
            let text = if screen.folds { text } else { crate::screen::cut(&text, room(screen, column)) };
            screen.labelled(&phase.name, &text, phase_tone(&phase.state), column)
        };
        phases.iter().map(line).collect()
    })
}

fn room(screen: &Screen, column: usize) -> usize {
    screen.width.map_or(usize::MAX, |width| width.saturating_sub(column).max(1))
}

fn row(phase: &PhaseStatus, bars: bool, now: Timestamp) -> Vec<Cell> {
    let tone = phase_tone(&phase.state);
    let counts = standing::tally(phase);
    let counts: Vec<String> =
        counts.into_iter().map(|(state, count)| format!("{count} {}", state.to_lowercase())).collect();
    let failed = if phase.failed > 0 { Tone::Bad } else { Tone::Plain };
    let mut row = vec![Cell::toned(&phase.name, Tone::Plain), Cell::toned(phase.state.as_str(), tone)];
    row.extend(bars.then(|| Cell::toned(bar(phase), tone)));
    row.extend([
        Cell::toned(format!("{}/{}", phase.healthy, phase.selected), Tone::Plain),
        Cell::toned(if phase.failed > 0 { phase.failed.to_string() } else { "-".to_owned() }, failed),
        Cell::toned(if counts.is_empty() { "-".to_owned() } else { counts.join(", ") }, Tone::Plain),
        Cell::toned(standing::waits(phase, now), Tone::Plain),
    ]);
    row
}

/// Done, under way, and left.
fn bar(phase: &PhaseStatus) -> String {
    let total = usize::try_from(phase.selected).unwrap_or(0);
    let count = |number: i64| usize::try_from(number).unwrap_or(0).min(total);
    let part = |count: usize| (count * BAR).checked_div(total).unwrap_or(0);
    let over = matches!(phase.state, PhaseState::Complete | PhaseState::Skipped);
    let done = if over { BAR } else { part(count(phase.healthy)) };
    let begun = part(count(phase.updated)).max(done);
    format!("{}{}{}", "█".repeat(done), "▒".repeat(begun - done), "░".repeat(BAR - begun))
}

/// Applications with their phases, where there are no steps.
pub(super) fn applications(
    all: &[&ApplicationStanding],
    picture: &Picture,
    now: Timestamp,
    screen: &Screen,
) -> String {
    let phase = |one: &ApplicationStanding| picture.phase(&one.name).map_or("-", |(_, name)| name).to_owned();
    let since = |one: &ApplicationStanding| one.since.map(|at| span(at, now)).unwrap_or_default();
    let waits = |one: &ApplicationStanding| {
        one.first.as_ref().map(|first| first_words(first, &one.name)).unwrap_or_default()
    };
    let row = |one: &&ApplicationStanding| {
        let tone = one.first.as_ref().map_or(Tone::Plain, |first| reason_tone(&first.reason));
        vec![
            Cell::from(&one.name),
            phase(one).into(),
            Cell::toned(&one.status, status_tone(one)),
            since(one).into(),
            Cell::toned(waits(one), tone),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    screen.table(&["APPLICATION", "PHASE", "STATUS", "SINCE", "WAITS FOR"], &rows, 0).unwrap_or_else(|| {
        let line = |one: &&ApplicationStanding| {
            let text = format!("phase {}, {} {}; {}", phase(one), one.status, since(one), waits(one));
            screen.labelled("", &one.name, Tone::Plain, 0)
                + &screen.labelled("", text.trim_end_matches("; "), status_tone(one), 4)
        };
        all.iter().map(line).collect()
    })
}

fn times(from: &Option<Time>, to: &Option<Time>, now: Timestamp) -> Option<String> {
    match (from, to) {
        (Some(Time(from)), Some(Time(to))) => {
            Some(format!("took {}, ended {} ago", span(*from, *to), span(*to, now)))
        }
        (Some(Time(from)), None) => Some(format!("began {} ago", span(*from, now))),
        _ => None,
    }
}

fn phase_tone(state: &PhaseState) -> Tone {
    match state {
        PhaseState::PreHooks | PhaseState::Deploying | PhaseState::Checking | PhaseState::PostHooks => {
            Tone::Busy
        }
        // It waits by itself, not for its turn.
        PhaseState::Waiting | PhaseState::RollingBack => Tone::Busy,
        PhaseState::Pending | PhaseState::Skipped => Tone::Quiet,
        PhaseState::RolledBack => Tone::Bad,
        other => state_tone(other.as_str()),
    }
}
