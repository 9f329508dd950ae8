//! Carries an operation out, step by step: what to do next, given what came of what was done.
//!
//! All that must outlive a restart stands in the operation's results and on the live objects. A hook carries the name of
//! its operation, so one that was created just before a restart is taken over and not run again.

mod check;
mod effect;
mod failure;
mod gate;
mod judge;
mod message;
mod results;
mod step;
mod terminate;
mod wave;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::application_status::{OperationPhase, OperationState, ResourceResult, ResultCode};
use baton_api::object::ResourceKey;
use serde_json::Value;

use crate::action::{Action, Outcome, Verb};
use crate::approval::{Approvals, sync_defaults};
use crate::observation::Observation;
use crate::options::Defaults;
use crate::plan::{self, Since};
use crate::request::Request;
use crate::task::Task;
use effect::{Effect, Issued};
pub(crate) use message::not_served;
use results::Results;
use wave::Run;

/// Most turns of one pass. No sync needs as many; whatever goes round in circles waits for the next pass instead.
const TURNS: usize = 10_000;

/// Carries one operation out for one pass.
///
/// # Guarantees
/// Pure and deterministic: the same observation, state and outcomes lead to the same actions. Nothing whose deletion asks
/// for approval is deleted before it is given, nor anything else of the operation, hooks aside.
///
/// # Assumptions
/// Before actions are carried out, results that have changed are written to the Application. Every outcome is told by
/// [`Engine::record`] before [`Engine::next`] is called again.
pub struct Engine<'a> {
    world: Observation<'a>,
    request: Request,
    results: Results,
    /// What became of live objects since the observation.
    since: Since,
    tasks: Vec<Task>,
    /// Where the tasks of an object stand.
    places: BTreeMap<ResourceKey, Vec<usize>>,
    stage: Stage,
    issued: BTreeMap<usize, Issued>,
    actions: usize,
    turns: usize,
    /// Objects applied in this pass whose health must be read anew before it counts.
    stale: BTreeSet<ResourceKey>,
    /// Running objects that were looked for past the cache in this pass.
    looked: BTreeSet<ResourceKey>,
    /// Hooks whose finalizer was taken off in this pass, or could not be.
    released: BTreeSet<ResourceKey>,
    /// Objects that could only be changed by deleting them, which is not approved.
    denied: BTreeSet<ResourceKey>,
    /// Whether taking hooks down had errors.
    had_errors: bool,
    /// Why hooks are taken down, where nobody asked for it.
    invalid: Option<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Carry these out: the groups in order, the actions of a group in parallel. Tell every outcome, then ask again.
    Do(Vec<Vec<Action>>),
    /// Ask again after this time.
    Pause(Duration),
    /// Nothing can be done until the world changes. Begin a new pass then.
    Wait {
        /// What is waited for.
        message: String,
        /// The objects whose deletion waits for approval.
        approvals: Vec<ResourceKey>,
    },
    /// The operation has ended.
    Done {
        /// How.
        phase: OperationPhase,
        /// In words.
        message: String,
    },
}

#[derive(Debug)]
enum Stage {
    Begin,
    NamespaceMade {
        task: usize,
    },
    Checked,
    /// Judge what runs and choose what comes next, from a plan built anew.
    Step,
    Wave(Run),
    /// Take down what is left, then end.
    TakeDown(terminate::Part),
    End(Next),
}

/// What a stage leads to.
enum Turn {
    Go(Stage),
    Act(Vec<Vec<(Verb, Issued)>>, Stage),
    Answer(Next, Stage),
}

// === impl Engine ===

impl<'a> Engine<'a> {
    /// Takes an operation up where its state left it.
    pub fn new(observation: Observation<'a>, state: &OperationState) -> Engine<'a> {
        let stored = state.sync_result.as_ref().map_or(&[][..], |result| &result.resources);
        Engine {
            request: Request::of(state, observation.now),
            world: observation,
            results: Results::of(stored),
            since: Since::new(),
            tasks: Vec::new(),
            places: BTreeMap::new(),
            stage: Stage::Begin,
            issued: BTreeMap::new(),
            actions: 0,
            turns: 0,
            stale: BTreeSet::new(),
            looked: BTreeSet::new(),
            released: BTreeSet::new(),
            denied: BTreeSet::new(),
            had_errors: false,
            invalid: None,
        }
    }

    /// What to do next.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> Next {
        // What was asked for and never answered was not done.
        for id in self.issued.keys().copied().collect::<Vec<_>>() {
            self.record(id, Outcome::Failed { message: "the action was not carried out".to_owned() });
        }
        loop {
            self.turns += 1;
            if self.turns > TURNS {
                return Next::Wait { message: message::BUSY.to_owned(), approvals: Vec::new() };
            }
            let turn = match std::mem::replace(&mut self.stage, Stage::Step) {
                Stage::Begin => self.begin(),
                Stage::NamespaceMade { task } => self.after_namespace(task),
                Stage::Checked => self.after_check(),
                Stage::Step => self.step(),
                Stage::Wave(run) => self.run(run),
                Stage::TakeDown(part) => self.take_down(part),
                Stage::End(next) => Turn::Answer(next.clone(), Stage::End(next)),
            };
            match turn {
                Turn::Go(stage) => self.stage = stage,
                Turn::Act(groups, stage) => {
                    self.stage = stage;
                    let groups = self.issue(groups);
                    if !groups.is_empty() {
                        return Next::Do(groups);
                    }
                }
                Turn::Answer(next, stage) => {
                    self.stage = stage;
                    return next;
                }
            }
        }
    }

    /// Tells what came of an action. An unknown or told one changes nothing.
    pub fn record(&mut self, id: usize, outcome: Outcome) {
        if let Some(issued) = self.issued.remove(&id) {
            self.take_effect(&issued, outcome);
        }
    }

    /// What was done so far, in the order it was begun.
    pub fn results(&self) -> Vec<ResourceResult> {
        self.results.list()
    }

    fn begin(&mut self) -> Turn {
        if self.request.terminating {
            return self.begin_terminate();
        }
        if let Some(message) = self.world.shared.filter(|_| self.request.has("FailOnSharedResource=true")) {
            return self.end(OperationPhase::Failed, format!("Shared resource found: {message}"));
        }
        match self.build() {
            Some(message) => self.end_invalid(message),
            // A dry run is nothing but the check, however often it is begun.
            None if self.is_started() && !self.request.sync.dry_run => Turn::Go(Stage::Step),
            None => self.make_namespace(),
        }
    }

    /// Ends a sync that is not valid. Where it was and is no more, hooks may run that nothing would ever let go of.
    fn end_invalid(&mut self, message: String) -> Turn {
        if !self.tasks.iter().any(|task| task.is_hook() && task.is_running()) {
            return self.end(OperationPhase::Failed, message);
        }
        self.invalid = Some(message);
        Turn::Go(Stage::TakeDown(terminate::Part::Look))
    }

    /// Builds the tasks anew. With any that must not be carried out the sync is not valid: why.
    fn build(&mut self) -> Option<String> {
        let faults = self.rebuild();
        for (index, fault) in &faults {
            let task = &mut self.tasks[*index];
            if task.is_running() {
                continue;
            }
            task.status = ResultCode::SyncFailed;
            task.state = OperationPhase::default();
            task.message.clone_from(fault);
            self.results.put(task);
        }
        let reasons: BTreeSet<String> = faults.into_iter().map(|(_, fault)| fault).collect();
        (!reasons.is_empty()).then(|| message::not_valid(&reasons))
    }

    /// Builds the tasks anew, with what is known of them; what must not be carried out is told.
    fn rebuild(&mut self) -> Vec<(usize, String)> {
        let plan = plan::build(&self.world, &self.request, &self.since);
        self.tasks = plan.tasks;
        self.places.clear();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            self.places.entry(task.key.clone()).or_default().push(index);
            self.results.restore(task);
        }
        self.adopt();
        plan.faults
    }

    /// Whether anything was done yet; the destination's namespace comes before that.
    fn is_started(&self) -> bool {
        let destination = &self.world.application.spec.destination.namespace;
        self.results.any(|result| {
            !(result.kind == "Namespace" && result.group.is_empty() && result.name == *destination)
        })
    }

    fn issue(&mut self, groups: Vec<Vec<(Verb, Issued)>>) -> Vec<Vec<Action>> {
        let mut numbered = Vec::new();
        for group in groups.into_iter().filter(|group| !group.is_empty()) {
            let mut actions = Vec::with_capacity(group.len());
            for (verb, issued) in group {
                self.issued.insert(self.actions, issued);
                actions.push(Action { id: self.actions, verb });
                self.actions += 1;
            }
            numbered.push(actions);
        }
        numbered
    }

    fn end(&mut self, phase: OperationPhase, message: String) -> Turn {
        Turn::Go(Stage::End(Next::Done { phase, message }))
    }

    fn wait(&mut self, message: String, approvals: Vec<ResourceKey>) -> Turn {
        Turn::Go(Stage::End(Next::Wait { message, approvals }))
    }

    fn defaults(&self) -> Defaults<'_> {
        sync_defaults(self.world.application, &self.request.sync)
    }

    fn approvals(&self) -> Approvals<'a> {
        Approvals { application: self.world.application, since: self.request.started_at, now: self.world.now }
    }

    /// Takes note of what a live object has become, here and in every task of it.
    fn saw(&mut self, key: &ResourceKey, live: Option<Arc<Value>>) {
        for place in self.places.get(key).into_iter().flatten() {
            self.tasks[*place].live.clone_from(&live);
        }
        self.since.insert(key.clone(), live);
    }

    /// Actions of one kind for some of the tasks, in one group.
    fn act(
        &self,
        tasks: impl IntoIterator<Item = usize>,
        effect: Effect,
        verb: impl Fn(&Task) -> Verb,
        next: Stage,
    ) -> Turn {
        Turn::Act(vec![self.group(tasks, effect, verb)], next)
    }

    fn group(
        &self,
        tasks: impl IntoIterator<Item = usize>,
        effect: Effect,
        verb: impl Fn(&Task) -> Verb,
    ) -> Vec<(Verb, Issued)> {
        tasks.into_iter().map(|task| (verb(&self.tasks[task]), Issued { task, effect })).collect()
    }

    /// Actions for some of the tasks, a group for each run of one kind.
    fn by_kind(
        &self,
        tasks: &[usize],
        effect: Effect,
        verb: impl Fn(&Task) -> Verb,
    ) -> Vec<Vec<(Verb, Issued)>> {
        let runs = tasks.chunk_by(|a, b| self.tasks[*a].key.kind == self.tasks[*b].key.kind);
        runs.map(|run| self.group(run.iter().copied(), effect, &verb)).collect()
    }

    /// Positions of the tasks that fulfil a condition, in order.
    fn which(&self, condition: impl Fn(&Task) -> bool) -> Vec<usize> {
        (0..self.tasks.len()).filter(|index| condition(&self.tasks[*index])).collect()
    }
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("stage", &self.stage).field("tasks", &self.tasks.len()).finish()
    }
}
