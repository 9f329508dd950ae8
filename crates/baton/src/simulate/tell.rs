//! Worlds in words and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use baton_sim::course::About as Subject;
use baton_sim::run::Report;
use serde_json::{Value, json};

use crate::failure::Failure;

/// How many names of many are told.
const FEW: usize = 8;

/// What a world is of.
pub(super) struct About {
    pub(super) title: String,
    /// What was made up, and what was left out.
    pub(super) notes: Vec<String>,
}

/// How many, and the first of them.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let first = names[..names.len().min(FEW)].join(", ");
    match names.len().saturating_sub(FEW) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The course of one world and the judge's word.
pub(super) fn text(about: &About, report: &Report) -> String {
    let mut text = heading(about);
    text.push('\n');
    for line in &report.course {
        let mark = match line.about {
            Subject::People => ">",
            Subject::Run => "=",
            Subject::Step | Subject::Phase => "-",
            Subject::Call => "@",
            Subject::Application => " ",
            Subject::Waiting => "?",
            Subject::Fault => "!",
        };
        let _ = writeln!(text, "{:>10}  {mark} {}", clock(line.at), line.text);
    }
    text.push_str(
        "\n> people   = run   - step or phase   @ hook or check   ? waiting   ! fault   (minutes and seconds of virtual \
         time)\n",
    );
    if !report.waiting.is_empty() {
        let _ = writeln!(text, "In the end it waits: {}", report.waiting.join("; "));
    }
    let _ = writeln!(text, "Faults: {}", faults(&report.counts));
    text + &verdict(report)
}

/// The judge's word on many worlds.
pub(super) fn text_of_many(about: &About, reports: &[Report]) -> String {
    let mut text = heading(about);
    text.push('\n');
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for report in reports {
        report.counts.iter().for_each(|(what, number)| *counts.entry(what.clone()).or_default() += number);
        if !report.violations.is_empty() || !report.waiting.is_empty() {
            let _ = writeln!(text, "seed {}: waits in the end: {}", report.seed, report.waiting.join("; "));
        }
        if !report.violations.is_empty() {
            text.push_str(&verdict(report));
        }
    }
    let broken = reports.iter().filter(|report| !report.violations.is_empty()).count();
    let syncs = counts.get("starts").copied().unwrap_or_default();
    let (worlds, faults) = (reports.len(), faults(&counts));
    let _ = writeln!(text, "Worlds: {worlds}, of which {broken} break an invariant; syncs: {syncs}");
    let _ = writeln!(text, "Faults: {faults}");
    text
}

/// One world as JSON.
pub(super) fn json(about: &About, report: &Report) -> Result<String, Failure> {
    let mut whole = object(report);
    whole["title"] = about.title.clone().into();
    whole["notes"] = about.notes.clone().into();
    let line = |line: &baton_sim::course::Line| json!({"at": line.at.as_secs_f64(), "about": format!("{:?}", line.about).to_lowercase(), "text": line.text});
    whole["timeline"] = report.course.iter().map(line).collect();
    pretty(&whole)
}

/// Many worlds as JSON, without what happened in each.
pub(super) fn json_of_many(about: &About, reports: &[Report]) -> Result<String, Failure> {
    let worlds: Vec<Value> = reports.iter().map(object).collect();
    pretty(&json!({"title": about.title, "notes": about.notes, "worlds": worlds}))
}

fn object(report: &Report) -> Value {
    let violation = |violation: &baton_sim::checker::Violation| {
        let at = report.since(violation.at).as_secs_f64();
        json!({"invariant": violation.invariant, "at": at, "text": violation.text})
    };
    json!({
        "seed": report.seed,
        "violations": report.violations.iter().map(violation).collect::<Vec<_>>(),
        "waiting": report.waiting,
        "counts": report.counts,
    })
}

fn pretty(value: &Value) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(text + "\n")
}

fn heading(about: &About) -> String {
    let mut text = format!("{}\n", about.title);
    for note in &about.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn verdict(report: &Report) -> String {
    if report.violations.is_empty() {
        return format!("Judge: every invariant was kept in the world of seed {}\n", report.seed);
    }
    let mut text = format!("Judge: broken in the world of seed {}:\n", report.seed);
    for violation in &report.violations {
        let (invariant, at) = (violation.invariant, clock(report.since(violation.at)));
        let _ = writeln!(text, "  {invariant} at {at}: {}", violation.text);
    }
    text
}

/// What struck, and how often.
fn faults(counts: &BTreeMap<String, u64>) -> String {
    let struck = counts.iter().filter(|(_, number)| **number > 0);
    let faults: Vec<String> = struck
        .filter_map(|(what, number)| Some(format!("{number} {}", what.strip_prefix("fault: ")?)))
        .collect();
    if faults.is_empty() { "none".to_owned() } else { faults.join(", ") }
}

fn clock(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    format!("{}:{:02}.{millis:03}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lists_are_told_briefly() {
        assert_eq!(clock(Duration::from_millis(61_005)), "1:01.005");
        assert_eq!(clock(Duration::from_secs(3 * 3600)), "180:00.000");
        assert_eq!(list(["a", "b"].into_iter()), "a, b");
        assert_eq!(list(["x"; 10].into_iter()), "x, x, x, x, x, x, x, x and 2 more");
    }
}
