//! `baton appset get --watch`: a rollout followed to its end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use baton_api::phase_status::GeneratorPhases;
use baton_phases::standing::news;
use baton_rollout::explain::{ApplicationStanding, Obstacle, Outlook, Standing};
use futures::StreamExt as _;
use jiff::Timestamp;

use super::picture::Picture;
use super::sets::{self, Sets};
use super::standing_view::{self as view, COLUMN};
use super::{control, phase_view};
use crate::failure::Failure;
use crate::screen::{Screen, Tone, clean};
use crate::session::Interruption;
use crate::shutdown::Shutdown;
use crate::{print, terminal};

/// How often times on the display are drawn anew.
const TICK: Duration = Duration::from_secs(1);
/// Rows that are used where the terminal does not tell how many it has.
const ROWS: usize = 24;

/// When a watch ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until {
    /// Also where only a person can let it go on.
    pub(super) waits: bool,
    /// Not with a run that was over before.
    pub(super) next: bool,
}

/// Follows a rollout until it ends, the set is gone, or the person has had enough.
///
/// # Errors
/// The rollout failed (3), waits for a person where that is an end (2), or cannot be watched.
pub(super) async fn run(sets: &Sets, name: &str, until: Until, json: bool) -> Result<(), Failure> {
    let set = sets.set(name).await?;
    let before = Picture::of(&set, None, &BTreeMap::new());
    control::has_something_to_tell(&set, &before.standing)?;
    let is_over = |picture: &Picture| matches!(picture.outlook(), Outlook::Done | Outlook::Failed);
    // The run that is over and does not count.
    let mut past = (until.next && is_over(&before)).then_some(before.standing.run);
    let mut seen = sets.watch(name);
    let mut shutdown = Shutdown::listen();
    let mut tick = tokio::time::interval(TICK);
    let title = format!("{}/{name}", set.metadata.namespace.as_deref().unwrap_or_default());
    let mut display = Display::new(title, json);
    loop {
        let event = tokio::select! {
            event = seen.next() => event,
            _ = tick.tick() => {
                display.redraw()?;
                continue;
            }
            () = shutdown.asked() => {
                return display.end(Err(Failure::failed("interrupted; the rollout goes on without a watcher")));
            }
        };
        match event {
            Some(Ok(Some(set))) => {
                let set = match sets::read(&set) {
                    Ok(set) => set,
                    Err(failure) => return display.end(Err(failure)),
                };
                let picture = Picture::of(&set, None, &BTreeMap::new());
                let (outlook, standing) = (picture.outlook(), &picture.standing);
                let first = || Some(view::obstacle_words(standing.first.as_ref()?, Timestamp::now()));
                let why = picture.failure().filter(|_| outlook == Outlook::Failed).or_else(first);
                let state = match outlook {
                    Outlook::Failed if standing.outlook() != Outlook::Failed => "Failed".to_owned(),
                    _ => standing.state.clone(),
                };
                past = past.filter(|run| *run == standing.run && is_over(&picture));
                display.show(picture)?;
                let end = match outlook {
                    _ if past.is_some() => continue,
                    Outlook::Done => Ok(()),
                    Outlook::Failed => Err(Failure::failed(told(name, &state, why))),
                    Outlook::WaitsForPerson if until.waits => {
                        Err(Failure::waiting(told(name, "waiting for a person", why)))
                    }
                    Outlook::Underway | Outlook::WaitsForPerson => continue,
                };
                return display.end(end);
            }
            Some(Ok(None)) => {
                let expected = display.last.as_ref().is_some_and(|last| last.standing.goes());
                return display.end(match expected {
                    true => Ok(()),
                    false => Err(Failure::failed(format!("{name} was deleted"))),
                });
            }
            Some(Err(Interruption::Refused(failure))) => return display.end(Err(failure)),
            Some(Err(Interruption::Lost(why))) => display.lost(&why),
            None => return display.end(Err(Failure::api("the watch of the ApplicationSet ended"))),
        }
    }
}

fn told(name: &str, what: &str, why: Option<String>) -> String {
    let why = why.map(|why| format!(": {}", clean(&why))).unwrap_or_default();
    format!("the rollout of {name} is {what}{why}")
}

/// What was shown last, and how.
struct Display {
    title: String,
    json: bool,
    /// Whether the last picture is drawn over; else each change is a line.
    redraws: bool,
    last: Option<Picture>,
    /// How many rows the last picture has.
    rows: usize,
    /// Whether the API has not answered since the last picture.
    lost: bool,
}

impl Display {
    fn new(title: String, json: bool) -> Display {
        let redraws = !json && std::io::stdout().is_terminal();
        Display { title, json, redraws, last: None, rows: 0, lost: false }
    }

    /// Says once that what is shown may be old.
    fn lost(&mut self, why: &str) {
        if !std::mem::replace(&mut self.lost, true) {
            terminal::remark(&format!("The API does not answer, and is asked again and again: {why}"));
            // The next picture begins below the remark.
            self.rows = 0;
        }
    }

    fn show(&mut self, picture: Picture) -> Result<(), Failure> {
        self.lost = false;
        if self.last.as_ref() == Some(&picture) {
            return Ok(());
        }
        if self.json {
            let line = serde_json::to_string(&picture).map_err(|error| Failure::failed(error.to_string()))?;
            print::out(&(line + "\n"))?;
        } else if !self.redraws {
            let now = Timestamp::now();
            let at = now.strftime("%Y-%m-%dT%H:%M:%SZ");
            let lines = transitions(self.last.as_ref(), &picture, now);
            print::out(&lines.iter().map(|line| format!("{at}  {}\n", clean(line))).collect::<String>())?;
        }
        self.last = Some(picture);
        self.redraw()
    }

    fn redraw(&mut self) -> Result<(), Failure> {
        let Some(picture) = self.last.as_ref().filter(|_| self.redraws && !self.lost) else { return Ok(()) };
        let screen = Screen::of_stdout();
        let lines = frame(&self.title, picture, Timestamp::now(), &screen);
        let mut text = String::new();
        if self.rows > 0 {
            // Up to where the last picture began, also after an echoed ^C, and everything below away.
            let _ = write!(text, "\r\x1b[{}A\x1b[J", self.rows);
        }
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        self.rows = lines.len();
        print::out(&text)?;
        // A reader that is gone is no failure, as for everything printed.
        let _ = std::io::stdout().flush();
        Ok(())
    }

    /// The last picture stays; what follows begins below it.
    fn end(mut self, end: Result<(), Failure>) -> Result<(), Failure> {
        self.redraw()?;
        end
    }
}

/// The picture of a moment: no more rows than the terminal has, none wider than it. What there is no room for is counted.
pub(super) fn frame(title: &str, shown: &Picture, now: Timestamp, screen: &Screen) -> Vec<String> {
    let standing = &shown.standing;
    let most = screen.height.unwrap_or(ROWS).saturating_sub(1).max(4);
    let mut picture: Vec<String> = lines(&screen.labelled("Set:", title, Tone::Heading, COLUMN));
    picture.extend(lines(&view::summary(standing, now, screen)));
    if let Some(first) = &standing.first {
        picture.extend(lines(&view::obstacle("Waits for:", first, now, screen)));
    }
    picture.push(String::new());
    // Below the steps there is a table of at least a heading and a row.
    let room = most.saturating_sub(picture.len() + 4);
    if shown.steps {
        picture.extend(steps(standing, now, room.max(1), screen));
    }
    for generator in &shown.phases {
        let room = most.saturating_sub(picture.len() + 4);
        picture.extend(phases(generator, now, room.max(1), screen));
    }
    let busy: Vec<&ApplicationStanding> = standing.applications.iter().filter(|one| is_busy(one)).collect();
    if !busy.is_empty() {
        picture.push(String::new());
        picture.extend(under_way(shown, &busy, now, most.saturating_sub(picture.len()), screen));
    }
    if picture.len() > most {
        picture.truncate(most - 1);
        picture.push(screen.paint(Tone::Quiet, "…"));
    }
    picture
}

/// The steps in so many rows.
fn steps(standing: &Standing, now: Timestamp, room: usize, screen: &Screen) -> Vec<String> {
    let all = &standing.steps;
    let undone = all.iter().position(|step| step.state != "Complete").unwrap_or(all.len());
    let rows = |from: usize, to: usize| lines(&view::steps(&all[from..to], now, screen));
    around("step", all.len(), undone, room, screen, rows)
}

/// The phases of a generator in so many rows.
fn phases(generator: &GeneratorPhases, now: Timestamp, room: usize, screen: &Screen) -> Vec<String> {
    let all = &generator.phases;
    let current = usize::try_from(generator.current_phase).unwrap_or(0).min(all.len());
    // A folded row would push others off the screen.
    let cut = Screen { folds: false, ..*screen };
    let rows = |from: usize, to: usize| lines(&phase_view::table(&all[from..to], now, &cut));
    let mut picture = lines(&phase_view::head(generator, now, screen));
    picture.extend(around("phase", all.len(), current, room.saturating_sub(picture.len()), screen, rows));
    picture
}

/// So many rows of a table: those around the first that is not done, and how many there are before and after.
fn around(
    what: &str,
    all: usize,
    undone: usize,
    room: usize,
    screen: &Screen,
    rows: impl Fn(usize, usize) -> Vec<String>,
) -> Vec<String> {
    // One row is the heading.
    if all < room {
        return rows(0, all);
    }
    let count = room.saturating_sub(3).max(1);
    let from = undone.saturating_sub(1).min(all.saturating_sub(count));
    let to = (from + count).min(all);
    let note = |count: usize, place: &str| {
        let counted = if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
        (count > 0).then(|| screen.paint(Tone::Quiet, &format!("… {counted} {place}")))
    };
    let mut shown: Vec<String> = note(from, "before, done").into_iter().collect();
    shown.extend(rows(from, to));
    shown.extend(note(all - to, "after"));
    shown
}

/// The Applications under way in so many rows.
fn under_way(
    shown: &Picture,
    busy: &[&ApplicationStanding],
    now: Timestamp,
    room: usize,
    screen: &Screen,
) -> Vec<String> {
    let numbers: Vec<i64> =
        shown.standing.steps.iter().map(|step| step.step).filter(|step| *step > 0).collect();
    // A folded row would push others off the screen.
    let cut = Screen { folds: false, ..*screen };
    let table = |count: usize| {
        lines(&match shown.steps {
            true => view::applications(&busy[..count], &numbers, now, &cut),
            false => phase_view::applications(&busy[..count], shown, now, &cut),
        })
    };
    let all = table(busy.len().min(room));
    if busy.len() <= room && all.len() <= room {
        return all;
    }
    let fitting =
        (0..busy.len().min(room)).rev().find(|count| table(*count).len() < room).unwrap_or_default();
    let mut rows = if fitting > 0 { table(fitting) } else { Vec::new() };
    let more = if fitting > 0 { " more" } else { "" };
    let text = format!("… {}{more} under way: `baton appset explain` tells of them", busy.len() - fitting);
    rows.push(screen.paint(Tone::Quiet, &view::cut_to(&text, screen)));
    rows
}

/// Whether something happens to it, or keeps the step from being done.
fn is_busy(one: &ApplicationStanding) -> bool {
    let waits = one.first.as_ref().map(|first| first.reason.as_str());
    one.step > 0
        && waits.is_some_and(|reason| {
            !matches!(reason, "WaitingForStep" | "WaitingForSlot" | "PhaseGate" | "Paused" | "Aborted")
        })
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// What is new, a line each: Applications and steps in the order in which it must have happened, then the run.
fn transitions(old: Option<&Picture>, new: &Picture, now: Timestamp) -> Vec<String> {
    let (before, after) = (old.map(|old| &old.standing), &new.standing);
    let mut lines = phase_lines(old, new, now);
    let known: BTreeMap<&str, &ApplicationStanding> = before
        .into_iter()
        .flat_map(|before| &before.applications)
        .map(|one| (one.name.as_str(), one))
        .collect();
    for number in after.steps.iter().map(|step| step.step).filter(|step| *step > 0).chain([-1]) {
        let step = step_line(before, after, number).filter(|_| new.steps);
        let opens = step.as_ref().is_some_and(|(_, state)| state == "Open");
        let (first, last) = if opens { (step, None) } else { (None, step) };
        lines.extend(first.map(|(line, _)| line));
        let members = after.applications.iter().filter(|one| one.step == number);
        // What was so at the beginning is no news.
        lines.extend(
            members.filter(|_| before.is_some()).filter_map(|one| application_line(&known, one, new)),
        );
        lines.extend(last.map(|(line, _)| line));
    }
    if before.is_none_or(|before| (before.run, &before.state) != (after.run, &after.state)) {
        let (done, total) = after.counts();
        let run = if after.run > 0 { format!("run {}", after.run) } else { "rollout".to_owned() };
        lines.push(format!("{run} {}, {done} of {total} done", after.state));
    }
    if let Some(first) = &after.first
        && before.is_none_or(|before| before.first.as_ref().is_none_or(|old| is_another(old, first)))
    {
        lines.push(format!("waits for {}", view::obstacle_words(first, now)));
    }
    if let Some(deletion) = &after.deletion
        && before.and_then(|before| before.deletion.as_ref()).is_none_or(|old| {
            (old.remaining, &old.deleting, old.step)
                != (deletion.remaining, &deletion.deleting, deletion.step)
        })
    {
        let now = if deletion.deleting.is_empty() { "none".to_owned() } else { deletion.deleting.join(", ") };
        lines.push(format!("deletion: {} left, going now: {now}", deletion.remaining));
    }
    lines
}

/// What is new of phases; at the beginning how far each generator is.
fn phase_lines(old: Option<&Picture>, new: &Picture, now: Timestamp) -> Vec<String> {
    let Some(old) = old else {
        let told = new.phases.iter().filter(|generator| !generator.message.is_empty());
        return told
            .map(|generator| format!("generator {}: {}", generator.generator, generator.message))
            .collect();
    };
    news(&old.phases, &new.phases, now).into_iter().map(|one| one.text).collect()
}

fn step_line(before: Option<&Standing>, after: &Standing, number: i64) -> Option<(String, String)> {
    let step = after.steps.iter().find(|step| step.step == number)?;
    let old = before.and_then(|before| before.steps.iter().find(|old| old.step == number));
    if old.is_some_and(|old| (&old.state, old.failed) == (&step.state, step.failed)) {
        return None;
    }
    let failed = if step.failed > 0 { format!(", {} failed", step.failed) } else { String::new() };
    let line = format!("step {number} {}, {} of {} done{failed}", step.state, step.done, step.total);
    Some((line, step.state.clone()))
}

fn application_line(
    known: &BTreeMap<&str, &ApplicationStanding>,
    one: &ApplicationStanding,
    picture: &Picture,
) -> Option<String> {
    let old = known.get(one.name.as_str());
    if old.is_some_and(|old| old.status == one.status) {
        return None;
    }
    let was = old.map(|old| format!("{} → ", old.status)).unwrap_or_default();
    let place = match picture.phase(&one.name) {
        Some((_, phase)) if !picture.steps => format!("phase {phase}"),
        _ if !picture.steps => "no phase yet".to_owned(),
        _ if one.step > 0 => format!("step {}", one.step),
        _ => "no step".to_owned(),
    };
    Some(format!("{} {was}{} ({place})", one.name, one.status))
}

/// Whether a wait is for something else. How a sync goes on is told by the display, not a line each.
fn is_another(old: &Obstacle, new: &Obstacle) -> bool {
    (&old.reason, &old.object) != (&new.reason, &new.object)
        || (old.message != new.message && new.reason != "Progressing")
}
