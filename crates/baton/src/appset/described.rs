//! One ApplicationSet for people: what it is, how its rollout stands, its Applications.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_rollout::explain::Standing;
use baton_rollout::head::Head;
use baton_rollout::plan::rolling_steps;
use jiff::Timestamp;
use serde_json::Value;

use super::objects::{generators, standing as condition};
use super::phase_view;
use super::picture::Picture;
use super::standing_view::{self as view, COLUMN};
use crate::failure::Failure;
use crate::objects::{or, text as text_of};
use crate::screen::{Cell, Screen, Tone};

/// So many Applications are shown on a terminal whatever they are.
const MANY: usize = 40;
/// Of more, so many that are not Synced and Healthy.
const SHOWN: usize = 20;
/// And of these so many that stand alike.
const ALIKE: usize = 5;

/// # Errors
/// If it is no ApplicationSet.
pub(super) fn text(
    set: &Value,
    head: Option<&Head>,
    all: bool,
    now: Timestamp,
    screen: &Screen,
) -> Result<String, Failure> {
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
    let picture = Picture::of(&typed, head, &BTreeMap::new());
    let standing = &picture.standing;
    if rolls || standing.deletes() || !picture.steps {
        out.push_str(&rollout(&picture, now, screen));
    }
    let applications = applications(set, Some(standing).filter(|_| rolls), all, screen);
    if !applications.is_empty() {
        out.push('\n');
        out.push_str(&applications);
    }
    Ok(out)
}

fn strategy(set: &Value) -> String {
    let kind = order(set);
    match text_of(set, "/spec/strategy/deletionOrder").as_str() {
        "" => kind,
        order => format!("{kind}, deletion {order}"),
    }
}

/// In which order the Applications of a set change.
pub(super) fn order(set: &Value) -> String {
    let phased = set["spec"]["generators"].as_array().into_iter().flatten();
    let phased = phased.filter(|generator| !generator["deploymentStrategy"].is_null()).count();
    match (text_of(set, "/spec/strategy/type").as_str(), phased) {
        ("" | "AllAtOnce", 0) => "AllAtOnce".to_owned(),
        ("" | "AllAtOnce", _) => "phases".to_owned(),
        (kind, 0) => kind.to_owned(),
        (kind, _) => format!("{kind} and phases"),
    }
}

fn rollout(picture: &Picture, now: Timestamp, screen: &Screen) -> String {
    let standing = &picture.standing;
    let mut out = view::summary(standing, now, screen);
    if let Some(first) = &standing.first {
        out.push_str(&view::obstacle("Waits for:", first, now, screen));
    }
    let more = standing.obstacles.len().saturating_sub(1);
    if more > 0 {
        let text = format!("and {more} more: `baton appset explain` tells them");
        out.push_str(&screen.labelled("", &text, Tone::Quiet, COLUMN));
    }
    let steps = if picture.steps { view::steps(&standing.steps, now, screen) } else { String::new() };
    let phases = phase_view::generators(&picture.phases, now, screen);
    for part in [steps, phases].iter().filter(|part| !part.is_empty()) {
        out.push('\n');
        out.push_str(part);
    }
    out
}

fn applications(set: &Value, standing: Option<&Standing>, all: bool, screen: &Screen) -> String {
    let resources = set.pointer("/status/resources").and_then(Value::as_array);
    let places: BTreeMap<&str, (i64, &str)> = standing
        .iter()
        .flat_map(|standing| &standing.applications)
        .map(|one| (one.name.as_str(), (one.step, one.status.as_str())))
        .collect();
    let read = |resource: &Value| Listed {
        sync: or(text_of(resource, "/status"), "Unknown"),
        health: or(text_of(resource, "/health/status"), "Unknown"),
        place: places.get(text_of(resource, "/name").as_str()).copied(),
        name: text_of(resource, "/name"),
    };
    let listed: Vec<Listed<'_>> = resources.into_iter().flatten().map(read).collect();
    if listed.is_empty() {
        return String::new();
    }
    let elides = screen.is_terminal() && !all && listed.len() > MANY;
    let well = listed.iter().filter(|one| one.is_well()).count();
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    let mut shown: Vec<&Listed<'_>> = listed.iter().collect();
    if elides {
        // Sync and health are told less often than the rollout, whose word comes first.
        shown.sort_by_key(|one| one.place.is_none_or(|(_, status)| status == "Healthy"));
        shown.retain(|one| {
            let count = seen.entry((one.place, &one.sync, &one.health)).or_default();
            *count += 1;
            !one.is_well() && *count <= ALIKE
        });
        shown.truncate(SHOWN);
    }
    let rows: Vec<Vec<Cell>> = shown.iter().map(|one| one.row(standing.is_some())).collect();
    let headings: &[&str] = match standing {
        Some(_) => &["APPLICATION", "STEP", "ROLLOUT", "SYNC", "HEALTH"],
        None => &["APPLICATION", "SYNC", "HEALTH"],
    };
    // Names are what a person looks for: they are never left out, however narrow the terminal is.
    let wide = Screen { width: None, ..*screen };
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => {
            screen.table(headings, &rows, 0).or_else(|| wide.table(headings, &rows, 0)).unwrap_or_default()
        }
    };
    let mut notes = Vec::new();
    if elides {
        let mut rest = Vec::new();
        let like = listed.len() - well - shown.len();
        rest.extend((like > 0).then(|| format!("{like} more like these")));
        rest.extend((well > 0).then(|| format!("{well} that are Synced and Healthy")));
        notes.push(format!("and {}: --all shows them", rest.join(", ")));
    }
    let total = set.pointer("/status/resourcesCount").and_then(Value::as_u64).unwrap_or_default();
    if total > listed.len() as u64 {
        let text = format!(
            "The status of the set lists {} of its {total} Applications; `baton app list` shows every one.",
            listed.len()
        );
        notes.push(text);
    }
    notes.iter().for_each(|note| out.push_str(&screen.labelled("", note, Tone::Quiet, 0)));
    out
}

/// An Application as the status of its set lists it.
struct Listed<'a> {
    name: String,
    sync: String,
    health: String,
    /// Its step, and how far it is in the rollout.
    place: Option<(i64, &'a str)>,
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

// === impl Listed ===

impl Listed<'_> {
    /// Whether there is nothing to tell of it.
    fn is_well(&self) -> bool {
        let rolled = self.place.is_none_or(|(_, status)| status == "Healthy");
        rolled && self.sync == "Synced" && self.health == "Healthy"
    }

    fn row(&self, rolls: bool) -> Vec<Cell> {
        let mut row = vec![Cell::from(&self.name)];
        if rolls {
            let (step, status) = self.place.unwrap_or((0, "-"));
            let step = if step > 0 { step.to_string() } else { "-".to_owned() };
            row.extend([step.into(), Cell::toned(status, view::state_tone(status))]);
        }
        row.extend([
            Cell::toned(&self.sync, sync_tone(&self.sync)),
            Cell::toned(&self.health, health_tone(&self.health)),
        ]);
        row
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_a_set_is_told_in_a_word_or_two() {
        let set = |strategy: Value, generators: Value| json!({"spec": {"strategy": strategy, "generators": generators}});
        let phases = || json!([{"list": {}}, {"clusters": {}, "deploymentStrategy": {"phases": []}}]);
        let plain = || json!([{"list": {}, "deploymentStrategy": null}]);
        for (strategy, generators, expected) in [
            (json!(null), plain(), "AllAtOnce"),
            (json!({"type": "AllAtOnce"}), plain(), "AllAtOnce"),
            (json!({"type": "RollingSync"}), plain(), "RollingSync"),
            (json!(null), phases(), "phases"),
            (json!({"type": "AllAtOnce"}), phases(), "phases"),
            (json!({"type": "RollingSync"}), phases(), "RollingSync and phases"),
        ] {
            assert_eq!(order(&set(strategy, generators)), expected);
        }
    }
}
