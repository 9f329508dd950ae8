//! The phases of somebody's own set in a made-up world: their order, limits, waits and calls as they are written, and
//! whom they take as it was found.
//!
//! Who goes in which phase is worked out before, from the parameters of the set's own generators, and written as a
//! label that Applications and parameters share. The judge reads the first target of a phase as it reads a step: who
//! is in it, how many at once (`maxUpdate`) and how many may fail (`maxFailures`). Controllers do not know those two
//! there.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_api::phases::{Check, DeploymentStrategy, Hook, Phase};
use baton_hooks::{Language, Policy, is_check_per_target, is_hook_per_target};
use baton_phases::forecast::brief;
use baton_phases::{Group, Target, assign, compile_anywhere};
use serde_json::{Value, json};

use super::{LONGEST_WAIT, Maker, Unfit};
use crate::checker::PHASE;

/// Who is called, whoever it is in truth.
const RECEIVER: &str = "https://hooks.example.com/";
/// Longest time that an Application may take.
const LONGEST_PROGRESS: Duration = Duration::from_secs(600);

/// What phases are in a world.
pub(super) struct Phased {
    /// `deploymentStrategy` as it is in the world.
    pub(super) strategy: Value,
    /// By name, the phase of each Application of that generator; empty where it is in none.
    pub(super) places: BTreeMap<String, String>,
    /// Names of hooks and checks.
    pub(super) calls: Vec<String>,
    /// The longest wait at the end of a phase.
    pub(super) wait: Duration,
}

impl Phased {
    /// Writes the phase of an Application on it.
    pub(super) fn mark(&self, name: &str, app: &mut Value) {
        if let Some(phase) = self.places.get(name) {
            app["metadata"]["labels"][PHASE] = phase.as_str().into();
        }
    }
}

/// The phases of a set; none where it has none.
///
/// # Errors
/// They make no sense, or there are more than a world has room for.
pub(super) fn of(
    set: &Value,
    targets: &BTreeMap<usize, Vec<Target>>,
    maker: &mut Maker,
) -> Result<Option<Phased>, Unfit> {
    let generators = set["spec"]["generators"].as_array().into_iter().flatten();
    let strategies = generators.enumerate().map(|(at, generator)| (at, &generator["deploymentStrategy"]));
    let mut strategies = strategies.filter(|(_, strategy)| !strategy.is_null());
    let (Some((generator, strategy)), others) = (strategies.next(), strategies.count()) else {
        return Ok(None);
    };
    if others > 0 {
        return Err(Unfit(format!(
            "{} generators have phases (deploymentStrategy), and those of one are simulated: try them one by one",
            others + 1
        )));
    }
    if super::is_rolling(set) {
        let why = "phases beside a RollingSync are not simulated yet: try one of the two orders";
        return Err(Unfit(why.to_owned()));
    }
    let wrong = |error: &dyn std::fmt::Display| Unfit(format!("phases: {error}"));
    let strategy: DeploymentStrategy =
        serde_json::from_value(strategy.clone()).map_err(|error| wrong(&error))?;
    let goes = set["spec"]["goTemplate"] == true;
    let language = if goes { Language::Go } else { Language::Params };
    let path = format!("spec.generators[{generator}].deploymentStrategy");
    let read = compile_anywhere(&strategy, &path, language).compiled;
    let Some(plan) = &read.plan else {
        return Err(read.errors().next().map_or_else(|| wrong(&"they make no sense"), |error| wrong(error)));
    };
    let targets = targets.get(&generator).map(Vec::as_slice).unwrap_or_default();
    let roster = assign(plan, targets).map_err(|all| wrong(&all[0]))?;
    if roster.is_idle() {
        return Err(wrong(&"none matches any Application, so that the rollout would not begin"));
    }
    let mut places = BTreeMap::new();
    for (phase, group) in plan.phases.iter().zip(&roster.phases) {
        places.extend(group.own.iter().map(|name| (name.to_string(), phase.name.to_string())));
        if group.matched == 0 {
            maker.note(format!("phase {} matches no Application and is passed over", phase.name));
        }
    }
    if !roster.unassigned.is_empty() {
        let names: Vec<&str> = roster.unassigned.iter().map(|name| &**name).collect();
        maker.note(format!("in no phase, and never touched: {}", names.join(", ")));
    }
    places.extend(roster.unassigned.iter().map(|name| (name.to_string(), String::new())));
    let policy = Policy::widest(language);
    let mut world = World { maker, policy, calls: Vec::new(), wait: Duration::ZERO };
    let phases: Vec<Value> =
        strategy.phases.iter().zip(&roster.phases).map(|(phase, group)| world.phase(phase, group)).collect();
    let World { calls, wait, .. } = world;
    if !calls.is_empty() {
        maker.note(
            "hooks and checks are answered by a made-up receiver, well unless --failing-hook names them"
                .to_owned(),
        );
    }
    let mut made = json!({"type": "phaseDeployment", "phases": phases});
    if let Some(limit) = strategy.revision_history_limit {
        made["revisionHistoryLimit"] = limit.into();
    }
    Ok(Some(Phased { strategy: made, places, calls, wait }))
}

/// What phases are made anew with.
struct World<'m> {
    maker: &'m mut Maker,
    policy: Policy,
    calls: Vec<String>,
    wait: Duration,
}

impl World<'_> {
    fn phase(&mut self, phase: &Phase, group: &Group) -> Value {
        let name = &phase.name;
        let mut own = json!({"matchExpressions": [{"key": PHASE, "operator": "In", "values": [name]}]});
        let action = phase.on_failure.as_ref().map_or("stop", |failure| failure.action.as_str());
        if action == "continue" {
            own["maxFailures"] = "100%".into();
        }
        let mut made = json!({"name": name});
        if let Some(limit) = &phase.max_concurrent {
            made["maxConcurrent"] = json!(limit);
            own["maxUpdate"] = json!(limit);
        }
        let mut targets = vec![own];
        if group.own.is_empty() && group.matched > 0 {
            // It changes nobody, but calls whom it calls: as if it had matched everybody.
            targets.push(json!({"matchExpressions": [{"key": "name", "operator": "Exists"}]}));
            made["percentage"] = 0.into();
        }
        made["targets"] = targets.into();
        if !matches!(action, "" | "stop") {
            made["onFailure"] = json!({"action": action});
        }
        if let Some(written) = &phase.wait_duration {
            let (text, wait) = self.cut(written, LONGEST_WAIT, &format!("waitDuration of phase {name}"));
            self.wait = self.wait.max(wait);
            made["waitDuration"] = text.into();
        }
        if let Some(written) = &phase.progress_deadline {
            let what = format!("progressDeadline of phase {name}");
            made["progressDeadline"] = self.cut(written, LONGEST_PROGRESS, &what).0.into();
        }
        made["preHooks"] = phase.pre_hooks.iter().map(|hook| self.hook(hook)).collect();
        made["checks"] = phase.checks.iter().map(|check| self.check(check)).collect();
        made["postHooks"] = phase.post_hooks.iter().map(|hook| self.hook(hook)).collect();
        made
    }

    fn hook(&mut self, hook: &Hook) -> Value {
        let mut made = json!(hook);
        self.call(&mut made, &hook.name, is_hook_per_target(hook, &self.policy));
        if let Some(retry) = &hook.retry {
            let what = format!("deadline of hook {}", hook.name);
            made["retry"]["deadline"] = self.cut(&retry.deadline, LONGEST_WAIT, &what).0.into();
            let what = format!("interval of hook {}", hook.name);
            made["retry"]["interval"] = self.cut(&retry.interval, LONGEST_WAIT / 5, &what).0.into();
        }
        made
    }

    fn check(&mut self, check: &Check) -> Value {
        let mut made = json!(check);
        self.call(&mut made, &check.name, is_check_per_target(check, &self.policy));
        made
    }

    /// Lets the receiver be called in the place of whom it is written to call, as often.
    fn call(&mut self, made: &mut Value, name: &str, per_target: bool) {
        if !self.calls.iter().any(|known| known == name) {
            self.calls.push(name.to_owned());
        }
        if let Some(fields) = made.as_object_mut() {
            fields.remove("command");
            fields.remove("secretRefs");
        }
        made["type"] = "http".into();
        made["http"] = json!({"url": RECEIVER});
        made["scope"] = if per_target { "target" } else { "phase" }.into();
        if let Some(written) = made["timeout"].as_str().map(str::to_owned) {
            made["timeout"] = self.cut(&written, LONGEST_WAIT, &format!("timeout of {name}")).0.into();
        }
    }

    /// A duration that a world has time for.
    fn cut(&mut self, written: &str, most: Duration, what: &str) -> (String, Duration) {
        let read: Option<baton_grammar::duration::Duration> = written.parse().ok();
        let read = read.and_then(|wait| wait.to_std()).unwrap_or_default();
        match read > most {
            false => (written.to_owned(), read),
            true => {
                self.maker.note(format!("{what}: {written} is cut to {}", brief(most)));
                (brief(most), most)
            }
        }
    }
}
