//! `baton appset get --watch`: a rollout followed to its end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_rollout::explain::{self, ApplicationStanding, Obstacle, Outlook, Standing};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;

use super::screen::{Screen, Tone, clean};
use super::standing_view::{self as view, COLUMN};
use super::{control, owned};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::print;
use crate::shutdown::Shutdown;

/// How often times on the display are drawn anew.
const TICK: Duration = Duration::from_secs(1);
/// Rows that are used where the terminal does not tell how many it has.
const ROWS: usize = 24;

/// Follows a rollout until it ends, the set is gone, or the person has had enough.
///
/// # Errors
/// The rollout failed (3), waits for a person where that is an end (2), or cannot be watched.
pub(super) async fn run(
    connection: &Connection,
    name: &str,
    exit_on_wait: bool,
    json: bool,
) -> Result<(), Failure> {
    let client = connection.client().await?;
    let set = owned::set(&client, &connection.namespace, name).await?;
    control::has_something_to_tell(&set, &explain::standing(&set, None, &BTreeMap::new()))?;
    let api: Api<ApplicationSet> = Api::namespaced(client, &connection.namespace);
    let mut seen = pin!(watch_object(api, name).default_backoff());
    let mut shutdown = Shutdown::listen();
    let mut tick = tokio::time::interval(TICK);
    let title = format!("{}/{name}", connection.namespace);
    let mut display = Display::new(title, json);
    loop {
        let event = tokio::select! {
            event = seen.next() => event,
            _ = tick.tick() => {
                display.redraw()?;
                continue;
            }
            () = shutdown.asked() => return display.end(Ok(())),
        };
        match event {
            Some(Ok(Some(set))) => {
                let standing = explain::standing(&set, None, &BTreeMap::new());
                let outlook = standing.outlook();
                let why = standing.first.as_ref().map(|first| view::obstacle_words(first, Timestamp::now()));
                let state = standing.state.clone();
                display.show(standing)?;
                let end = match outlook {
                    Outlook::Done => Ok(()),
                    Outlook::Failed => Err(Failure::failed(told(name, &state, why))),
                    Outlook::WaitsForPerson if exit_on_wait => {
                        Err(Failure::waiting(told(name, "waiting for a person", why)))
                    }
                    Outlook::Underway | Outlook::WaitsForPerson => continue,
                };
                return display.end(end);
            }
            Some(Ok(None)) => {
                let expected = display.last.as_ref().is_some_and(|last| last.deletion.is_some());
                return display.end(match expected {
                    true => Ok(()),
                    false => Err(Failure::failed(format!("{name} was deleted"))),
                });
            }
            Some(Err(error)) => {
                if let Some(refusal) = crate::app::refusal(&error) {
                    return display.end(Err(Failure::api(refusal)));
                }
                tracing::info!(%error, "the watch of the ApplicationSet begins anew");
            }
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
    last: Option<Standing>,
    /// How many rows the last picture has.
    rows: usize,
}

impl Display {
    fn new(title: String, json: bool) -> Display {
        let redraws = !json && std::io::stdout().is_terminal();
        Display { title, json, redraws, last: None, rows: 0 }
    }

    fn show(&mut self, standing: Standing) -> Result<(), Failure> {
        if self.last.as_ref() == Some(&standing) {
            return Ok(());
        }
        if self.json {
            let line =
                serde_json::to_string(&standing).map_err(|error| Failure::failed(error.to_string()))?;
            print::out(&(line + "\n"))?;
        } else if !self.redraws {
            let now = Timestamp::now();
            let at = now.strftime("%Y-%m-%dT%H:%M:%SZ");
            let lines = transitions(self.last.as_ref(), &standing, now);
            print::out(&lines.iter().map(|line| format!("{at}  {}\n", clean(line))).collect::<String>())?;
        }
        self.last = Some(standing);
        self.redraw()
    }

    fn redraw(&mut self) -> Result<(), Failure> {
        let Some(standing) = self.last.as_ref().filter(|_| self.redraws) else { return Ok(()) };
        let screen = Screen::of_stdout();
        let lines = frame(&self.title, standing, Timestamp::now(), &screen);
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

/// The picture of a moment: no more rows than the terminal has, none wider than it.
pub(super) fn frame(title: &str, standing: &Standing, now: Timestamp, screen: &Screen) -> Vec<String> {
    let most = screen.height.unwrap_or(ROWS).saturating_sub(1).max(4);
    let mut head: Vec<String> = lines(&screen.labelled("Set:", title, Tone::Heading, COLUMN));
    head.extend(lines(&view::summary(standing, now, screen)));
    if let Some(first) = &standing.first {
        head.extend(lines(&view::obstacle("Waits for:", first, now, screen)));
    }
    head.push(String::new());
    head.extend(lines(&view::steps(standing, now, screen)));
    let busy: Vec<&ApplicationStanding> = standing.applications.iter().filter(|one| is_busy(one)).collect();
    if !busy.is_empty() && head.len() + 4 <= most {
        head.push(String::new());
        let numbers: Vec<i64> =
            standing.steps.iter().map(|step| step.step).filter(|step| *step > 0).collect();
        // A folded row would push others off the screen.
        let cut = Screen { folds: false, ..*screen };
        let table = lines(&view::applications(&busy, &numbers, now, &cut));
        let room = most - head.len();
        match table.len() > room {
            false => head.extend(table),
            true => {
                head.extend(table.into_iter().take(room - 1));
                head.push(screen.paint(Tone::Quiet, "…"));
            }
        }
    }
    head.truncate(most);
    head
}

/// Whether something happens to it, or keeps the step from being done.
fn is_busy(one: &ApplicationStanding) -> bool {
    let waits = one.first.as_ref().map(|first| first.reason.as_str());
    one.step > 0
        && waits.is_some_and(|reason| {
            !matches!(reason, "WaitingForStep" | "WaitingForSlot" | "Paused" | "Aborted")
        })
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// What is new, a line each: Applications and steps in the order in which it must have happened, then the run.
fn transitions(before: Option<&Standing>, after: &Standing, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let known: BTreeMap<&str, &ApplicationStanding> = before
        .into_iter()
        .flat_map(|before| &before.applications)
        .map(|one| (one.name.as_str(), one))
        .collect();
    for number in after.steps.iter().map(|step| step.step).filter(|step| *step > 0).chain([-1]) {
        let step = step_line(before, after, number);
        let opens = step.as_ref().is_some_and(|(_, state)| state == "Open");
        let (first, last) = if opens { (step, None) } else { (None, step) };
        lines.extend(first.map(|(line, _)| line));
        let members = after.applications.iter().filter(|one| one.step == number);
        // What was so at the beginning is no news.
        lines.extend(members.filter(|_| before.is_some()).filter_map(|one| application_line(&known, one)));
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
) -> Option<String> {
    let old = known.get(one.name.as_str());
    if old.is_some_and(|old| old.status == one.status) {
        return None;
    }
    let was = old.map(|old| format!("{} → ", old.status)).unwrap_or_default();
    let place = if one.step > 0 { format!("step {}", one.step) } else { "no step".to_owned() };
    Some(format!("{} {was}{} ({place})", one.name, one.status))
}

/// Whether a wait is for something else. How a sync goes on is told by the display, not a line each.
fn is_another(old: &Obstacle, new: &Obstacle) -> bool {
    (&old.reason, &old.object) != (&new.reason, &new.object)
        || (old.message != new.message && new.reason != "Progressing")
}
