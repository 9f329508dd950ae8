//! The phases of a plan for people: one table per generator, and the phase of each Application.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_phases::forecast::{CallForecast, Forecast, PhaseForecast, brief};
use baton_phases::preview::Preview;
use baton_rollout::plan::ApplicationPlan;

use crate::screen::{Cell, Screen, Tone};

/// What comes before, in the middle of, and after a phase.
const WHEN: [(&str, &str); 3] = [("pre", "before"), ("check", "checks"), ("post", "after")];

/// The phase of each Application that a generator with phases gives.
#[derive(Default)]
pub(super) struct Places<'a>(BTreeMap<&'a str, Place<'a>>);

/// Where an Application is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place<'a> {
    /// No phase has a say in it.
    Free,
    /// In a phase: of which generator, the place of the phase, and its name.
    Phase(usize, usize, &'a str),
    /// In no phase, though its generator has some.
    Aside,
    /// Its generator's phases cannot be followed.
    Held,
}

/// The phases of every generator that has, or had, some.
pub(super) fn text(phases: &[Preview], screen: &Screen) -> Option<String> {
    let parts: Vec<String> = phases.iter().map(|preview| of_generator(preview, screen)).collect();
    Some(parts.join("\n")).filter(|text| !text.is_empty())
}

/// How many Applications would be neither created nor changed, since their phases cannot be followed.
pub(super) fn held(phases: &[Preview]) -> usize {
    phases.iter().map(|preview| preview.held.len()).sum()
}

/// How a set is deployed, where phases have a say in it.
pub(super) fn title(phases: &[Preview]) -> Option<String> {
    let count = |preview: &Preview| preview.forecast.as_ref().map(|forecast| forecast.phases.len());
    let sound = phases.iter().filter(|preview| preview.held.is_empty());
    match sound.filter_map(count).collect::<Vec<_>>().as_slice() {
        [] => None,
        [1] => Some("1 phase".to_owned()),
        [count] => Some(format!("{count} phases")),
        several => Some(format!("phases of {} generators", several.len())),
    }
}

fn of_generator(preview: &Preview, screen: &Screen) -> String {
    let whose = match preview.generator_type.as_str() {
        "" => format!("generator {}", preview.generator),
        kind => format!("generator {} ({kind})", preview.generator),
    };
    let count = match preview.applications {
        1 => "1 Application".to_owned(),
        count => format!("{count} Applications"),
    };
    let mut out = screen.labelled("", &format!("Phases of {whose}, {count}:"), Tone::Heading, 0);
    if let Some(forecast) = &preview.forecast {
        out.push_str(&table(forecast, screen));
    }
    // The heading has said which generator it is.
    let path = format!("spec.generators[{}].deploymentStrategy.", preview.generator);
    let short = |text: &str| text.strip_prefix(&path).unwrap_or(text).to_owned();
    let mut remark = |text: &str, tone: Tone| out.push_str(&screen.labelled("!", text, tone, 2));
    if let Some(removal) = &preview.removal {
        remark(&removal.sentence(), Tone::Busy);
    }
    preview.problems.iter().for_each(|problem| remark(&short(problem), Tone::Bad));
    let warnings = preview.forecast.iter().flat_map(|forecast| &forecast.warnings);
    warnings.for_each(|warning| remark(&short(warning), Tone::Busy));
    for refused in &preview.operator {
        remark(&format!("without flags a controller refuses {}", short(refused)), Tone::Busy);
    }
    out
}

fn table(forecast: &Forecast, screen: &Screen) -> String {
    let waits = forecast.phases.iter().any(|phase| phase.wait_seconds > 0);
    let mut headings = vec!["PHASE", "APPS", "MATCHED", "UP TO", "AT ONCE"];
    headings.extend(waits.then_some("WAIT"));
    headings.extend(["ON FAILURE", "CALLS"]);
    let row = |phase: &PhaseForecast| {
        let tone = if phase.matched == 0 { Tone::Busy } else { Tone::Plain };
        let mut row: Vec<Cell> = vec![
            Cell::toned(&phase.name, tone),
            phase.applications.len().to_string().into(),
            Cell::toned(phase.matched.to_string(), tone),
            phase.share.as_deref().unwrap_or("all").into(),
            phase.at_once.map_or_else(|| "all".to_owned(), |count| count.to_string()).into(),
        ];
        row.extend(waits.then(|| Cell::from(wait(phase).unwrap_or_else(|| "-".to_owned()))));
        row.extend([Cell::from(phase.on_failure), Cell::from(calls(phase))]);
        row
    };
    let rows: Vec<Vec<Cell>> = forecast.phases.iter().map(row).collect();
    // Calls are sentences; where they would be a ribbon, each phase has a line of its own.
    screen.roomy(&headings, &rows, 0).unwrap_or_else(|| {
        let column = forecast.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or(0) + 4;
        let line = |phase: &PhaseForecast| {
            let mut out =
                screen.labelled(&format!("  {}", phase.name), &phase.sentence, Tone::Plain, column.min(24));
            let calls = calls(phase);
            if phase.matched > 0 && calls != "-" {
                out.push_str(&screen.labelled("", &calls, Tone::Quiet, column.min(24)));
            }
            out
        };
        forecast.phases.iter().map(line).collect()
    })
}

fn wait(phase: &PhaseForecast) -> Option<String> {
    (phase.wait_seconds > 0).then(|| brief(Duration::from_secs(phase.wait_seconds)))
}

/// What is called, by when.
fn calls(phase: &PhaseForecast) -> String {
    let list = |(when, words): (&str, &str)| {
        let calls: Vec<String> = phase.calls.iter().filter(|call| call.when == when).map(call).collect();
        (!calls.is_empty()).then(|| format!("{words}: {}", calls.join(", ")))
    };
    let lists: Vec<String> = WHEN.into_iter().filter_map(list).collect();
    if lists.is_empty() { "-".to_owned() } else { lists.join("; ") }
}

fn call(call: &CallForecast) -> String {
    let mut words = Vec::new();
    if call.per_target {
        words.push("for each".to_owned());
    }
    match call.failure_policy {
        "ignore" => words.push("may fail".to_owned()),
        "abort" => words.push("or abort".to_owned()),
        _ => {}
    }
    words.extend(call.retry_seconds.map(|retry| format!("tried for {}", brief(Duration::from_secs(retry)))));
    match words.is_empty() {
        true => call.name.clone(),
        false => format!("{} ({})", call.name, words.join(", ")),
    }
}

// === impl Places ===

impl<'a> Places<'a> {
    pub(super) fn of(phases: &'a [Preview]) -> Places<'a> {
        let mut places = BTreeMap::new();
        for preview in phases {
            if !preview.held.is_empty() {
                places.extend(preview.held.iter().map(|name| (name.as_str(), Place::Held)));
                continue;
            }
            let Some(forecast) = &preview.forecast else { continue };
            for (at, phase) in forecast.phases.iter().enumerate() {
                let place = Place::Phase(preview.generator, at, &phase.name);
                places.extend(phase.applications.iter().map(|name| (name.as_str(), place)));
            }
            places.extend(forecast.unassigned.iter().map(|name| (name.as_str(), Place::Aside)));
        }
        Places(places)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn place(&self, one: &ApplicationPlan) -> Place<'a> {
        self.0.get(one.name.as_str()).copied().unwrap_or(Place::Free)
    }
}

// === impl Place ===

impl Place<'_> {
    /// As a cell beside a name.
    pub(super) fn cell(self) -> String {
        match self {
            Place::Free => "-".to_owned(),
            Place::Phase(_, _, name) => name.to_owned(),
            Place::Aside => "none".to_owned(),
            Place::Held => "held".to_owned(),
        }
    }

    /// As a heading above names.
    pub(super) fn heading(self) -> String {
        match self {
            Place::Free => "All at once".to_owned(),
            Place::Phase(_, _, name) => format!("Phase {name}"),
            Place::Aside => "In no phase".to_owned(),
            Place::Held => "Held: the phases cannot be followed".to_owned(),
        }
    }
}
