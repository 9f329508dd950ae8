//! `pause`, `resume`, `abort`, `retry`, `advance`, `rollback`, `skip`: a person's word on a rollout, written where the controller reads it.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::names::baton::{ABORT, ADVANCE, PIN, RETRY, ROLLBACK, ROLLBACK_ALL};
use baton_api::phase_status::{GeneratorPhases, PhaseApplication, PhaseApplicationState, PhaseStatus};
use baton_api::strategy::StrategyType;
use baton_phases::{self as phases, Ask, refusal};
use baton_rollout::explain::{self, Standing};
use baton_rollout::head::Head;
use baton_rollout::pin::Fingerprint;
use baton_rollout::plan::rolling_steps;
use baton_rollout::stamp::Stamp;
use clap::Args;
use futures::StreamExt as _;
use serde_json::Value;

use super::owned;
use super::sets::{self, Sets, Told, Word};
use crate::failure::Failure;
use crate::objects::text;
use crate::place::Place;
use crate::{print, terminal};

#[derive(Debug, Args)]
#[command(
    after_help = "What runs already ends as it does; nothing more is started, healed or written until `baton appset resume`. The same \
by hand: annotation baton.dev/paused: \"true\" on the ApplicationSet.

Exit codes: 0 paused; 1 usage; 3 the set has no rollout; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset pause web
  baton appset resume web"
)]
pub(crate) struct Pause {
    /// The ApplicationSet.
    set: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The rollout goes on where it was. The same by hand: take the annotation baton.dev/paused away.

Exit codes: 0 resumed; 1 usage; 3 it is not paused, or the set has no rollout; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset resume web"
)]
pub(crate) struct Resume {
    /// The ApplicationSet.
    set: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Applications that have changed stay as they are; no other is started. A new commit or template begins a new run, \
`baton appset retry` this one again. The same by hand: a new text in the annotation baton.dev/abort.

Exit codes: 0 asked for; 1 usage; 3 there is nothing to abort, or the set has no rollout; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset abort web
  baton appset explain web"
)]
pub(crate) struct Abort {
    /// The ApplicationSet.
    set: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A failed sync is not tried again by itself. Without names every Application that failed is. The same by hand: a \
new text in the annotation baton.dev/retry, as NONCE or NONCE/APPLICATION,APPLICATION.

Exit codes: 0 asked for; 1 usage; 3 there is nothing to retry, no such Application, or the set has no rollout; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset retry web
  baton appset retry web web-prod-eu web-prod-us"
)]
pub(crate) struct Retry {
    /// The ApplicationSet.
    set: String,
    /// Only these of its Applications.
    applications: Vec<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "An Application that is skipped counts as done for what this run asks of it, and no longer: a new commit or \
template asks again. The same by hand: annotation baton.dev/skip: APPLICATION=PIN,… with the pin that `baton appset \
explain SET APPLICATION` tells.

Exit codes: 0 skipped; 1 usage; 3 no such Application, nothing asked of it, or the set has no rollout; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset skip web web-prod-eu
  baton appset explain web web-prod-eu"
)]
pub(crate) struct Skip {
    /// The ApplicationSet.
    set: String,
    /// The Applications.
    #[arg(required = true)]
    applications: Vec<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A phase that waits ends its wait now, in every generator that waits; one that failed and stopped is passed over, with what \
failed in it left as it is. That it was asked for, and what became of it, is an Event of the set and a line of the controller's log. The same by hand: a new text in the annotation \
baton.dev/advance.

Exit codes: 0 asked for; 1 usage; 3 no phase waits or has failed, or the set has no phases; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset phases web
  baton appset advance web"
)]
pub(crate) struct Advance {
    /// The ApplicationSet.
    set: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each Application goes back to its own last good state, in the reverse order, and is kept there until the next \
commit or template. One without a good state is left as it is and told of. The same by hand: a new text in the annotation \
baton.dev/rollback, or baton.dev/rollback-all.

Exit codes: 0 asked for; 1 usage; 3 it was refused, nothing was changed yet, it was put back already, or the set has no phases; 20 no such set, or the \
API refused or cannot be reached.

Examples:
  baton appset rollback web          what the present phase has changed
  baton appset rollback web --all    what the whole run has changed"
)]
pub(crate) struct Rollback {
    /// The ApplicationSet.
    set: String,
    /// What the whole run has changed, not only its present phase.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    place: Place,
}

/// How long the answer of a controller is waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A set and its rollout.
struct Desk {
    sets: Sets,
    name: String,
    set: ApplicationSet,
    head: Option<Head>,
}

impl Pause {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        let already = desk.is_paused();
        let told = desk.sets.tell(&desk.set, &Word::Pause).await?;
        desk.say(if already { "was paused already" } else { "paused" })?;
        if told == Told::Later && !already {
            terminal::remark("It takes effect when the controller sees it.");
        }
        Ok(())
    }
}

impl Resume {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        if !desk.is_paused() && !desk.head.as_ref().is_some_and(|head| head.run.paused) {
            return Err(Failure::failed(format!("nothing to resume: {} is not paused", self.set)));
        }
        desk.tell(Word::Resume, "resumed").await
    }
}

impl Abort {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        let standing = desk.standing();
        let over = matches!(standing.state.as_str(), "Complete" | "Idle" | "Aborted");
        desk.grants(Ask::Abort, &standing, over)?;
        desk.ask(Ask::Abort, Word::Abort).await
    }
}

impl Retry {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        let standing = desk.standing();
        let over = matches!(standing.state.as_str(), "Complete" | "Idle");
        desk.grants(Ask::Retry, &standing, over)?;
        desk.members(&self.applications).await?;
        desk.ask(Ask::Retry, Word::Retry(self.applications)).await
    }
}

impl Advance {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        desk.has_phases()?;
        desk.grants(Ask::Advance, &desk.standing(), true)?;
        desk.ask(Ask::Advance, Word::Advance).await
    }
}

impl Rollback {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        desk.has_phases()?;
        let ask = if self.all { Ask::RollbackAll } else { Ask::Rollback };
        desk.grants(ask, &desk.standing(), true)?;
        if desk.phases().all(has_changed_nothing) {
            return Err(Failure::failed(format!(
                "nothing to put back in {}: its phases have changed nothing yet",
                self.set
            )));
        }
        desk.ask(ask, if self.all { Word::RollbackAll } else { Word::Rollback }).await
    }
}

impl Skip {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.place, &self.set).await?;
        let members = desk.members(&self.applications).await?;
        let mut skipped = BTreeMap::new();
        for (name, object) in &members {
            let pin = desk.pin(object);
            // What a server keeps to itself it judges itself.
            if pin.is_none() && matches!(desk.sets, Sets::Cluster(_)) {
                return Err(Failure::failed(format!(
                    "no run asks anything of {name} yet, so there is nothing to skip"
                )));
            }
            skipped.insert(name.clone(), pin);
        }
        desk.sets.tell(&desk.set, &Word::Skip(skipped.clone())).await?;
        for (name, pin) in &skipped {
            let pin = pin.map(|pin| format!(" at {pin}")).unwrap_or_default();
            print::out(&format!("application.argoproj.io/{name} counts as done{pin}\n"))?;
        }
        Ok(())
    }
}

/// Whether a phase has neither brought nor put back anybody.
fn has_changed_nothing(phase: &PhaseStatus) -> bool {
    let counts = |entry: &PhaseApplication| {
        use PhaseApplicationState as S;
        matches!(entry.state, S::RollingBack | S::RolledBack | S::RollbackFailed)
    };
    phase.updated == 0 && !phase.applications.iter().any(counts)
}

/// Whether a generator of the set goes in phases, or did until they are through.
pub(super) fn has_phases(set: &ApplicationSet) -> bool {
    !set.status.phases.is_empty()
        || set.spec.generators.iter().any(|generator| generator.deployment_strategy.is_some())
}

/// # Errors
/// The set does not go step by step.
fn rolls(set: &ApplicationSet) -> Result<(), Failure> {
    match rolling_steps(set.spec.strategy.as_ref()) {
        Some(_) => Ok(()),
        None if has_phases(set) => Ok(()),
        None => {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            let kind = set.spec.strategy.as_ref().map(|strategy| &strategy.kind);
            Err(Failure::failed(match kind == Some(&StrategyType::RollingSync) {
                true => format!(
                    "{name} has no rollout: RollingSync needs steps in spec.strategy.rollingSync.steps"
                ),
                false => format!(
                    "{name} has no rollout: its strategy is not RollingSync, so all its Applications change at once; \
                     `baton appset plan {name}` tells what they become"
                ),
            }))
        }
    }
}

/// # Errors
/// The set neither goes step by step nor deletes anything.
pub(super) fn has_something_to_tell(set: &ApplicationSet, standing: &Standing) -> Result<(), Failure> {
    if standing.deletes() { Ok(()) } else { rolls(set) }
}

/// Why phases would refuse what is asked of them, where they all would.
fn refused(ask: Ask, phases: &[GeneratorPhases]) -> Option<String> {
    let mut all: Vec<String> =
        phases.iter().map(|generator| refusal(ask, generator)).collect::<Option<Vec<String>>>()?;
    match all.is_empty() {
        true => Some("no phase has begun".to_owned()),
        false => Some(all.swap_remove(0)),
    }
}

/// What phases have said to a request, once all of them have: refused is what none of them grants.
fn answer(ask: Ask, text: &str, phases: &[GeneratorPhases]) -> Option<Result<(), String>> {
    let begin = format!("{}: ", ask.as_str());
    let mut refusals = Vec::new();
    for generator in phases {
        if generator.granted.get(ask.as_str()).map(|granted| granted.trim()) != Some(text.trim()) {
            return None;
        }
        refusals.push(generator.refused.iter().find_map(|refused| refused.strip_prefix(&begin)));
    }
    let refused = refusals.into_iter().collect::<Option<Vec<&str>>>();
    Some(match refused.as_deref() {
        Some([first, ..]) => Err((*first).to_owned()),
        _ => Ok(()),
    })
}

// === impl Desk ===

impl Desk {
    async fn open(place: &Place, name: &str) -> Result<Desk, Failure> {
        let sets = Sets::at(place).await?;
        let set = sets.set(name).await?;
        rolls(&set)?;
        let head = sets.head(&set).await;
        Ok(Desk { sets, name: name.to_owned(), set, head })
    }

    async fn tell(&self, word: Word, said: &str) -> Result<(), Failure> {
        self.sets.tell(&self.set, &word).await?;
        self.say(said)
    }

    /// Asks for something, and tells what phases say to it.
    ///
    /// # Errors
    /// Also where they refuse it.
    async fn ask(&self, ask: Ask, word: Word) -> Result<(), Failure> {
        let (what, annotation) = match ask {
            Ask::Abort => ("abort", ABORT),
            Ask::Retry => ("retry", RETRY),
            Ask::Advance => ("advance", ADVANCE),
            Ask::Rollback => ("rollback", ROLLBACK),
            Ask::RollbackAll => ("rollback", ROLLBACK_ALL),
        };
        self.tell(word, &format!("{what} asked for")).await?;
        if self.set.status.phases.is_empty() {
            return Ok(());
        }
        if self.is_paused() {
            terminal::remark(&format!("It is paused: `baton appset resume {}` lets it go on.", self.name));
        }
        let mut seen = self.sets.watch(&self.name);
        let answered = async {
            while let Some(sight) = seen.next().await {
                let Ok(Some(whole)) = sight else { continue };
                let set = sets::read(&whole)?;
                let text = set.metadata.annotations.as_ref().and_then(|all| all.get(annotation));
                match answer(ask, text.map_or("", String::as_str), &set.status.phases) {
                    Some(Ok(())) => return Ok(true),
                    Some(Err(why)) => return Err(Failure::failed(format!("{what} was refused: {why}"))),
                    None => {}
                }
            }
            Ok(false)
        };
        if !tokio::time::timeout(ANSWERS_WITHIN, answered).await.unwrap_or(Ok(false))? {
            let set = &self.name;
            terminal::remark(&format!(
                "No controller has answered yet: `baton appset phases {set}` tells when one has."
            ));
        }
        Ok(())
    }

    /// # Errors
    /// The set has no phases.
    fn has_phases(&self) -> Result<(), Failure> {
        match has_phases(&self.set) {
            true => Ok(()),
            false => Err(Failure::failed(format!(
                "{} has no phases: none of its generators has a deploymentStrategy",
                self.name
            ))),
        }
    }

    fn phases(&self) -> impl Iterator<Item = &PhaseStatus> {
        self.set.status.phases.iter().flat_map(|generator| &generator.phases)
    }

    fn is_paused(&self) -> bool {
        baton_rollout::control::is_paused(self.set.metadata.annotations.as_ref())
    }

    fn standing(&self) -> Standing {
        explain::standing(&self.set, self.head.as_ref(), &BTreeMap::new())
    }

    /// # Errors
    /// It would be refused. `over` tells whether the rollout is, where the set has no phases.
    fn grants(&self, ask: Ask, standing: &Standing, over: bool) -> Result<(), Failure> {
        // What is to come of a change that no controller has told of is not known.
        if standing.outdated {
            return Ok(());
        }
        let verb = match ask {
            Ask::Abort => "abort",
            Ask::Retry => "retry",
            Ask::Advance => "advance",
            Ask::Rollback | Ask::RollbackAll => "put back",
        };
        if !has_phases(&self.set) {
            return if over { Err(self.nothing_to(verb, standing)) } else { Ok(()) };
        }
        // Applications that no phase has a say in are tried again beside them.
        let beside = ask == Ask::Retry && standing.state == "Failed";
        let failed = phases::outlook(&self.set.status.phases);
        if beside && !matches!(failed, phases::Outlook::Failed(_)) {
            return Ok(());
        }
        match refused(ask, &self.set.status.phases) {
            None => Ok(()),
            Some(why) => Err(Failure::failed(format!(
                "nothing to {verb} in {0}: {why}; `baton appset phases {0}` shows more",
                self.name
            ))),
        }
    }

    fn nothing_to(&self, verb: &str, standing: &Standing) -> Failure {
        let run = if standing.run > 0 { format!("run {}", standing.run) } else { "its rollout".to_owned() };
        Failure::failed(format!("nothing to {verb} in {}: {run} is {}", self.name, standing.state))
    }

    /// The named Applications of the set.
    async fn members(&self, names: &[String]) -> Result<BTreeMap<String, Value>, Failure> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let all = self.sets.applications(&self.set).await?;
        let mut members: BTreeMap<String, Value> =
            all.into_iter().map(|object| (owned::name_of(&object), object)).collect();
        if let Some(absent) = names.iter().find(|name| !members.contains_key(*name)) {
            let set = &self.name;
            return Err(Failure::failed(format!(
                "{set} has no Application {absent}; `baton appset get {set} --all` shows those it has"
            )));
        }
        members.retain(|name, _| names.contains(name));
        Ok(members)
    }

    /// What the run asks of an Application: as the head records it, or as its last write was stamped.
    fn pin(&self, object: &Value) -> Option<Fingerprint> {
        let uid = text(object, "/metadata/uid");
        let recorded = self.head.as_ref().and_then(|head| head.row(Fingerprint::of([uid])));
        recorded.map(|row| row.pin).or_else(|| {
            let stamp: Stamp = object["metadata"]["annotations"][PIN].as_str()?.parse().ok()?;
            (self.set.metadata.uid.as_deref() == Some(&*stamp.set)).then_some(stamp.pin)
        })
    }

    fn say(&self, what: &str) -> Result<(), Failure> {
        print::out(&format!("applicationset.argoproj.io/{} {what}\n", self.name))
    }
}

#[cfg(test)]
mod tests {
    use baton_api::phase_status::PhaseState;

    use super::*;

    #[test]
    fn a_request_is_answered_when_every_generator_has_and_refused_when_none_grants_it() {
        let said = |text: &str, refused: &[&str]| GeneratorPhases {
            granted: [("rollback".to_owned(), text.to_owned())].into(),
            refused: refused.iter().map(|why| (*why).to_owned()).collect(),
            ..GeneratorPhases::default()
        };
        let no = said("b", &["advance: it waits for nothing", "rollback: nothing good is known"]);
        let told = |phases: &[GeneratorPhases]| answer(Ask::Rollback, "b", phases);
        assert_eq!(told(&[said("b", &[]), said("a", &[])]), None, "one has not answered yet");
        assert_eq!(told(&[said("b", &[]), no.clone()]), Some(Ok(())));
        assert_eq!(told(&[no.clone(), no]), Some(Err("nothing good is known".to_owned())));
        assert_eq!(answer(Ask::Advance, "b", &[said("b", &[])]), None);
    }

    #[test]
    fn phases_refuse_only_where_all_do() {
        let generator = |state: PhaseState| GeneratorPhases {
            phases: vec![PhaseStatus { name: "dev".to_owned(), state, ..PhaseStatus::default() }],
            ..GeneratorPhases::default()
        };
        let (waits, deploys) = (generator(PhaseState::Waiting), generator(PhaseState::Deploying));
        assert_eq!(refused(Ask::Advance, &[deploys.clone(), waits.clone()]), None);
        let why = refused(Ask::Advance, &[deploys, generator(PhaseState::PreHooks)]);
        assert!(why.is_some_and(|why| why.contains("phase \"dev\" is Deploying")));
        let why = refused(Ask::Retry, &[waits]);
        assert!(why.is_some_and(|why| why.contains("nothing has failed")));
        assert_eq!(refused(Ask::Abort, &[]).as_deref(), Some("no phase has begun"));
    }
}
