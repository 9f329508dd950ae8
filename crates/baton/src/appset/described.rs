//! One ApplicationSet for people: what it is, how its rollout stands, its Applications.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_rollout::explain::{self, Standing};
use baton_rollout::plan::rolling_steps;
use jiff::Timestamp;
use serde_json::Value;

use super::objects::{generators, standing as condition};
use super::screen::{Cell, Screen, Tone};
use super::standing_view::{self as view, COLUMN};
use crate::failure::Failure;
use crate::objects::{or, text as text_of};

/// # Errors
/// If it is no ApplicationSet.
pub(super) fn text(set: &Value, now: Timestamp, screen: &Screen) -> Result<String, Failure> {
    let typed: ApplicationSet =
        serde_json::from_value(set.clone()).map_err(|error| Failure::failed(error.to_string()))?;
    let (condition, message) = condition(set);
    let mut out = String::new();
    for (label, value) in [
        ("Name", format!("{}/{}", text_of(set, "/metadata/namespace"), text_of(set, "/metadata/name"))),
        ("Project", text_of(set, "/spec/template/spec/project")),
        ("Generators", generators(set)),
        ("Strategy", strategy(set)),
        ("Health", or(text_of(set, "/status/health/status"), "Unknown")),
        ("Condition", if message.is_empty() { condition } else { format!("{condition}: {message}") }),
        ("Apps", typed.status.resources_count.to_string()),
    ] {
        out.push_str(&screen.labelled(&format!("{label}:"), &value, Tone::Plain, COLUMN));
    }
    let rolls = rolling_steps(typed.spec.strategy.as_ref()).is_some();
    let standing = explain::standing(&typed, None, &BTreeMap::new());
    if rolls || standing.deletes() {
        out.push_str(&rollout(&standing, now, screen));
    }
    let applications = applications(set, Some(&standing).filter(|_| rolls), screen);
    if !applications.is_empty() {
        out.push('\n');
        out.push_str(&applications);
    }
    Ok(out)
}

fn strategy(set: &Value) -> String {
    let kind = or(text_of(set, "/spec/strategy/type"), "AllAtOnce");
    match text_of(set, "/spec/strategy/deletionOrder").as_str() {
        "" => kind,
        order => format!("{kind}, deletion {order}"),
    }
}

fn rollout(standing: &Standing, now: Timestamp, screen: &Screen) -> String {
    let mut out = view::summary(standing, now, screen);
    if let Some(first) = &standing.first {
        out.push_str(&view::obstacle("Waits for:", first, now, screen));
    }
    let more = standing.obstacles.len().saturating_sub(1);
    if more > 0 {
        let text = format!("and {more} more: `baton appset explain` tells them");
        out.push_str(&screen.labelled("", &text, Tone::Quiet, COLUMN));
    }
    let steps = view::steps(standing, now, screen);
    if !steps.is_empty() {
        out.push('\n');
        out.push_str(&steps);
    }
    out
}

fn applications(set: &Value, standing: Option<&Standing>, screen: &Screen) -> String {
    let resources = set.pointer("/status/resources").and_then(Value::as_array);
    let places: BTreeMap<&str, (i64, &str)> = standing
        .iter()
        .flat_map(|standing| &standing.applications)
        .map(|one| (one.name.as_str(), (one.step, one.status.as_str())))
        .collect();
    let row = |resource: &Value| {
        let (name, health) = (text_of(resource, "/name"), or(text_of(resource, "/health/status"), "Unknown"));
        let sync = or(text_of(resource, "/status"), "Unknown");
        let mut row = vec![Cell::from(&name)];
        if standing.is_some() {
            let (step, status) = places.get(name.as_str()).copied().unwrap_or((0, "-"));
            let step = if step > 0 { step.to_string() } else { "-".to_owned() };
            row.extend([step.into(), Cell::toned(status, view::state_tone(status))]);
        }
        row.extend([Cell::toned(&sync, sync_tone(&sync)), Cell::toned(&health, health_tone(&health))]);
        row
    };
    let rows: Vec<Vec<Cell>> = resources.into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings: &[&str] = match standing {
        Some(_) => &["APPLICATION", "STEP", "ROLLOUT", "SYNC", "HEALTH"],
        None => &["APPLICATION", "SYNC", "HEALTH"],
    };
    // Names are what a person looks for: they are never left out, however narrow the terminal is.
    let wide = Screen { width: None, ..*screen };
    screen.table(headings, &rows, 0).or_else(|| wide.table(headings, &rows, 0)).unwrap_or_default()
}

fn sync_tone(sync: &str) -> Tone {
    match sync {
        "Synced" => Tone::Good,
        "OutOfSync" => Tone::Busy,
        _ => Tone::Plain,
    }
}

fn health_tone(health: &str) -> Tone {
    match health {
        "Healthy" => Tone::Good,
        "Progressing" | "Suspended" => Tone::Busy,
        "Degraded" | "Missing" => Tone::Bad,
        _ => Tone::Plain,
    }
}
