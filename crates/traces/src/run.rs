//! What a run was, read off the status of its set.

use baton_api::ApplicationSet;
use baton_api::phase_status::{GeneratorPhases, HookResult, HookState, PhaseState, PhaseStatus};
use baton_api::rollout_status::{RolloutState, RolloutStatus, StepState, StepStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::span::{Attribute, Outcome, Span, span_id, trace_id};

/// Most spans of one run. A hook that is called for each of thousands of Applications is told of by the first of them.
const MOST: usize = 2_000;

/// The run that has ended between two versions of a set, as spans, the run itself first; none where none has.
///
/// A run ends when its status says so, or when a newer one takes its place.
pub fn ended(before: &ApplicationSet, after: &ApplicationSet, now: Timestamp) -> Vec<Span> {
    let known = before.status.rollout.as_ref().filter(|known| known.run > 0);
    let Some(next) = after.status.rollout.as_ref() else { return Vec::new() };
    let same = known.filter(|known| known.run == next.run);
    match (known, &next.finished_at) {
        (Some(known), _) if known.run < next.run && known.finished_at.is_none() => {
            spans(before, known, now, true)
        }
        (_, Some(Time(end))) if same.is_none_or(|known| known.finished_at.is_none()) => {
            spans(after, next, *end, false)
        }
        _ => Vec::new(),
    }
}

/// The number of each step that was done, when it had opened, and when it was done: as it says itself, or when the next one
/// opened, or when the run ended.
pub fn done_steps(rollout: &RolloutStatus) -> Vec<(i64, Timestamp, Timestamp)> {
    let mut next = rollout.finished_at.as_ref();
    let mut done = Vec::new();
    for step in rollout.steps.iter().filter(|step| step.step > 0).rev() {
        let is_done = matches!(step.state, StepState::Complete | StepState::Soaking);
        let end = step.completed_at.as_ref().or(next);
        if let (true, Some(Time(opened)), Some(Time(end))) = (is_done, &step.opened_at, end) {
            done.push((step.step, *opened, *end));
        }
        next = step.opened_at.as_ref();
    }
    done.reverse();
    done
}

/// One run on its way into spans.
struct Telling {
    trace: [u8; 16],
    start: Timestamp,
    end: Timestamp,
    spans: Vec<Span>,
}

fn spans(set: &ApplicationSet, rollout: &RolloutStatus, end: Timestamp, superseded: bool) -> Vec<Span> {
    let Some(Time(start)) = &rollout.started_at else { return Vec::new() };
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let trace = trace_id(uid, rollout.run);
    let mut telling = Telling { trace, start: *start, end: end.max(*start), spans: Vec::new() };
    let root = telling.add(None, &["run"], run_name(set), (*start, end), run_outcome(rollout, superseded));
    telling.spans[0].attributes = about_run(set, rollout, superseded);
    let done = done_steps(rollout);
    for step in &rollout.steps {
        let end = done.iter().find(|(number, ..)| *number == step.step).map(|(.., end)| *end);
        telling.step(root, step, end);
    }
    for generator in &set.status.phases {
        telling.generator(root, generator);
    }
    telling.spans
}

fn run_name(set: &ApplicationSet) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("rollout {}/{}", text(&set.metadata.namespace), text(&set.metadata.name))
}

fn run_outcome(rollout: &RolloutStatus, superseded: bool) -> Outcome {
    match &rollout.state {
        _ if superseded => Outcome::Unset,
        RolloutState::Failed | RolloutState::Aborted => Outcome::Badly(rollout.message.clone()),
        RolloutState::Complete => Outcome::Well,
        _ => Outcome::Unset,
    }
}

fn about_run(
    set: &ApplicationSet,
    rollout: &RolloutStatus,
    superseded: bool,
) -> Vec<(&'static str, Attribute)> {
    let text = |field: &Option<String>| Attribute::Text(field.clone().unwrap_or_default());
    let revision = |it: &baton_api::rollout_status::ResolvedRevision| {
        format!("{}@{} = {}", without_user(&it.repo_url), it.target_revision, it.revision)
    };
    vec![
        ("baton.set.namespace", text(&set.metadata.namespace)),
        ("baton.set.name", text(&set.metadata.name)),
        ("baton.run", Attribute::Number(rollout.run)),
        ("baton.state", Attribute::Text(rollout.state.as_str().to_owned())),
        ("baton.superseded", Attribute::Flag(superseded)),
        ("baton.restarts", Attribute::Number(rollout.restarts)),
        ("baton.revisions", Attribute::Texts(rollout.revisions.iter().map(revision).collect())),
    ]
}

/// A URL without the name and password that some carry.
fn without_user(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
            let bare = parsed.set_username("").and_then(|()| parsed.set_password(None));
            bare.map_or_else(|()| String::new(), |()| parsed.to_string())
        }
        _ => url.to_owned(),
    }
}

impl Telling {
    /// Adds a span and gives its identity.
    fn add(
        &mut self,
        parent: Option<[u8; 8]>,
        path: &[&str],
        name: String,
        (start, end): (Timestamp, Timestamp),
        outcome: Outcome,
    ) -> [u8; 8] {
        let id = span_id(&self.trace, path);
        if self.spans.len() < MOST {
            let (trace, end) = (self.trace, end.max(start));
            self.spans.push(Span { trace, id, parent, name, start, end, attributes: Vec::new(), outcome });
        }
        id
    }

    fn about(&mut self, id: [u8; 8], attributes: Vec<(&'static str, Attribute)>) {
        if let Some(span) = self.spans.last_mut().filter(|span| span.id == id) {
            span.attributes = attributes;
        }
    }

    fn step(&mut self, root: [u8; 8], step: &StepStatus, end: Option<Timestamp>) {
        let Some(Time(opened)) = &step.opened_at else { return };
        let end = end.unwrap_or(self.end);
        let outcome = match step.state {
            StepState::Complete | StepState::Soaking => Outcome::Well,
            StepState::Failed => Outcome::Badly("more Applications failed than the step allows".to_owned()),
            _ => Outcome::Unset,
        };
        let number = step.step.to_string();
        let name = format!("step {number}");
        let id = self.add(Some(root), &["step", &number], name, (*opened, end), outcome);
        self.about(
            id,
            vec![
                ("baton.step", Attribute::Number(step.step)),
                ("baton.state", Attribute::Text(step.state.as_str().to_owned())),
                ("baton.applications", Attribute::Number(step.total)),
                ("baton.failed", Attribute::Number(step.failed)),
            ],
        );
    }

    fn generator(&mut self, root: [u8; 8], generator: &GeneratorPhases) {
        let place = generator.generator.to_string();
        // What went before this run stands in the trace of another.
        let of_run =
            |phase: &&PhaseStatus| phase.started_at.as_ref().is_some_and(|Time(at)| *at >= self.start);
        let phases: Vec<&PhaseStatus> = generator.phases.iter().filter(of_run).collect();
        for phase in phases {
            self.phase(root, &place, generator.generator, phase);
        }
    }

    fn phase(&mut self, root: [u8; 8], place: &str, generator: i64, phase: &PhaseStatus) {
        let Some(Time(start)) = &phase.started_at else { return };
        let end = phase.finished_at.as_ref().map_or(self.end, |Time(end)| *end);
        let outcome = match (&phase.failure, &phase.state) {
            (Some(failure), _) => Outcome::Badly(failure.message.clone()),
            (None, PhaseState::Complete | PhaseState::Skipped) => Outcome::Well,
            (None, _) => Outcome::Unset,
        };
        let path = ["phase", place, &phase.name];
        let id = self.add(Some(root), &path, format!("phase {}", phase.name), (*start, end), outcome);
        self.about(
            id,
            vec![
                ("baton.generator", Attribute::Number(generator)),
                ("baton.state", Attribute::Text(phase.state.as_str().to_owned())),
                ("baton.applications", Attribute::Number(phase.selected)),
                ("baton.failed", Attribute::Number(phase.failed)),
            ],
        );
        for (list, what, results) in [
            ("preHooks", "hook", &phase.pre_hooks),
            ("checks", "check", &phase.checks),
            ("postHooks", "hook", &phase.post_hooks),
        ] {
            for result in results {
                self.call(id, &[&path[..], &[list, &result.name, &result.target]].concat(), what, result);
            }
        }
    }

    fn call(&mut self, phase: [u8; 8], path: &[&str], what: &str, result: &HookResult) {
        let Some(Time(start)) = &result.started_at else { return };
        let end = result.finished_at.as_ref().map_or(self.end, |Time(end)| *end);
        let outcome = match &result.state {
            HookState::Succeeded => Outcome::Well,
            HookState::Failed | HookState::Ignored => Outcome::Badly(result.message.clone()),
            _ => Outcome::Unset,
        };
        let id = self.add(Some(phase), path, format!("{what} {}", result.name), (*start, end), outcome);
        let mut about = vec![
            ("baton.state", Attribute::Text(result.state.as_str().to_owned())),
            ("baton.attempts", Attribute::Number(result.attempt)),
        ];
        if !result.target.is_empty() {
            about.push(("baton.application", Attribute::Text(result.target.clone())));
        }
        about.extend(result.code.map(|code| ("baton.code", Attribute::Number(code))));
        self.about(id, about);
    }
}
