//! One round over one set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::names;
use baton_api::names::application_set::{MIN_VERSION, PHASE_PREFIX, ROLLBACK_PHASE_PREFIX};
use baton_api::phase_status::GeneratorPhases;
use baton_hooks::{Role, SetName, Severity};
use baton_phases::{Gate, Hold, Notice, Outlook, mirror, outlook, version as min_version};
use serde::Deserialize;
use serde_json::{Value, json};

use super::audit::{Asked, manager_of};
use super::caller::{Prepared, What};
use super::good::{GoodStates, Proved};
use super::judge::{Court, Judged, waits_for};
use super::memory::{Memory, version, version_of};
use super::names::Owner;
use super::plans::{LanguagePolicy, phased};
use super::sides::{Kept, Sides, Text};
use super::told::{PhaseError, Round, Ruled, Ruling, newest_run};
use super::{MANAGER, Phases, params};
use crate::cache::ObjectKey;
use crate::objects::{ApiError, Objects, Seen};

/// When annotations that could not be written are tried again.
const MIRROR_PAUSE: Duration = Duration::from_secs(30);
/// Why everybody is held where the set is not what it was taken for.
const CHANGED: &str = "the ApplicationSet has changed meanwhile and is looked at again";

/// The objects of the API that a round uses.
pub(super) struct Api {
    sets: Objects,
    maps: Objects,
    pub(super) revisions: Objects,
}

/// What a round has come to know of the set on its way.
struct Ground<'a> {
    key: &'a ObjectKey,
    set: &'a ApplicationSet,
    round: &'a Round<'a>,
    api: Api,
    /// The set as the API last told.
    told: Option<Value>,
}

impl Phases {
    pub(super) async fn work(
        &self,
        key: &ObjectKey,
        memory: &mut Memory,
        round: &Round<'_>,
    ) -> Result<Ruling, PhaseError> {
        let annotations = round.set.metadata.annotations.as_ref();
        let least = annotations.and_then(|all| all.get(MIN_VERSION)).map(String::as_str);
        if let Err(why) = min_version::check(least) {
            // The set's own controller tells it in the condition ErrorOccurred.
            return Ok(Ruling::held(round, version(round.set), &why));
        }
        if self.settings.dry_run {
            return Ok(Ruling::held(
                round,
                version(round.set),
                "this controller makes no changes (--dry-run)",
            ));
        }
        if memory.is_idle() && phased(round.set).is_empty() && !is_mirrored(round.set) {
            self.calls.forget(key);
            return Ok(Ruling {
                version: version(round.set),
                outlook: Some(Outlook::Done),
                ..Ruling::default()
            });
        }
        let api = Api::new(self, key);
        let given = version(round.set);
        // Whoever tells of a set that is older than what was written here does not know it as it is.
        memory.doubts_set |= given < memory.sure && memory.newer_than(given).is_none();
        if memory.doubts_set && !self.reread(key, memory, &api).await? {
            return Ok(Ruling::held(round, given, "the ApplicationSet is gone"));
        }
        let (told, newer) = match memory.newer_than(given) {
            Some((raw, newer)) => (Some(raw.clone()), Some(newer)),
            None => (None, None),
        };
        let set = newer.as_ref().unwrap_or(round.set);
        // What the round was told of Applications belongs to another specification, or the set cannot be read.
        // So does what it was told of a run, where another leader has begun the phases of a later one since.
        let ahead = newest_run(set) > newest_run(round.set).max(round.run);
        if ahead || set.metadata.generation != round.set.metadata.generation || version(set) < memory.sure {
            let held = Ruling::held(round, version(set), CHANGED);
            return Ok(Ruling { again: true, set: told, ..held });
        }
        memory.follow(&set.status.phases);
        let ground = Ground { key, set, round, api, told };
        self.decide(ground, memory).await
    }

    /// Reads the set as it is now. False if it is gone.
    async fn reread(&self, key: &ObjectKey, memory: &mut Memory, api: &Api) -> Result<bool, PhaseError> {
        let found = api.sets.get(&key.name).await.map_err(PhaseError::Set)?;
        let Some(raw) = found.filter(|raw| raw["metadata"]["uid"] == *memory.uid) else {
            self.calls.forget(key);
            return Ok(false);
        };
        memory.trust(raw);
        Ok(true)
    }

    async fn decide(&self, mut ground: Ground<'_>, memory: &mut Memory) -> Result<Ruling, PhaseError> {
        let (key, set, round) = (ground.key, ground.set, ground.round);
        let uid = memory.uid.clone();
        let owner = Owner { name: &key.name, namespace: &key.namespace, uid: &uid };
        if memory.doubts_sides {
            let sides = Sides::load(&ground.api.maps, owner).await;
            memory.keep(sides.map_err(PhaseError::ReadDetails)?);
        }
        if memory.doubts_good {
            let good = GoodStates::load(&ground.api.revisions, owner).await;
            memory.good = good.map_err(PhaseError::ReadGood)?;
            memory.doubts_good = false;
        }
        let policy = self.policy(key, set);
        let leaves = set.metadata.deletion_timestamp.is_some();
        let hold = if leaves { Hold::Deleting } else { round.hold };
        let (in_flight, ended) = self.calls.of(key);
        let court = Court { set, owner, round, hold, policy: &policy, in_flight: &in_flight, ended: &ended };
        // Taken out meanwhile: judging thousands of Applications takes long, and rounds over other sets must not wait for it.
        let mut plans = self.plans.lock().remove(key).unwrap_or_default();
        let judged = court.judge(memory, &mut plans);
        self.plans.lock().insert(key.clone(), plans);
        let mut ruling = rule(&judged, version(set));
        if let Some(why) = memory.good.refused() {
            let message = format!(
                "good states are not kept, so nothing can be put back: grant the controller get, list, create and delete on \
                 controllerrevisions (apps): {why}"
            );
            ruling.notices.push(Notice { severity: Severity::Warning, reason: "GoodStateNotKept", message });
        }
        self.find_back(&ground, memory, owner, &mut ruling).await?;
        let known = |generator: usize| judged.iter().any(|judged| judged.generator == generator);
        let lost = in_flight.iter().filter(|call| !known(call.generator));
        let cancelled = judged.iter().flat_map(|judged| &judged.decision.cancel);
        cancelled.chain(lost).for_each(|call| self.calls.cancel(key, call));
        if hold == Hold::Deleting {
            return Ok(Ruling { set: ground.told, ..ruling });
        }
        if !self.withdraw_good(&mut ground, memory, &judged).await? {
            return Ok(ground.changed());
        }
        if !self.keep_good(&ground, memory, owner, &judged, &mut ruling).await? {
            return Ok(ground.changed());
        }
        let sides: BTreeMap<String, Text> = judged.iter().flat_map(|judged| judged.sides.clone()).collect();
        let kept = memory.sides.store(&ground.api.maps, owner, &sides).await;
        if kept.map_err(PhaseError::KeepDetails)? == Kept::Changed {
            memory.doubts_sides = true;
            return Ok(ground.changed());
        }
        let next: Vec<GeneratorPhases> = judged.iter().filter_map(|judged| judged.status.clone()).collect();
        let written = next != set.status.phases;
        if written && !self.store(&mut ground, memory, &judged, &next).await? {
            return Ok(ground.changed());
        }
        if written {
            self.tell_answers(&ground, &judged);
        }
        self.calls.taken(key, &ended, |ended| waits_for(&judged, ended));
        if judged.iter().any(|judged| !judged.decision.calls.is_empty())
            && !written
            && !self.is_current(&mut ground, memory).await?
        {
            return Ok(ground.changed());
        }
        self.make_calls(&ground, &policy, &judged);
        memory.sides.sweep(&ground.api.maps, &sides).await;
        memory.good.trim(&ground.api.revisions, |name| ruling.gates.contains_key(name)).await;
        if !mirrored(&mut ground, memory, &next).await {
            let later = round.now.checked_add(MIRROR_PAUSE).unwrap_or(round.now);
            ruling.wake = Some(ruling.wake.map_or(later, |wake| wake.min(later)));
        }
        if next.is_empty() && phased(set).is_empty() && memory.sides.is_empty() {
            // There is nothing left of it.
            *memory = Memory::new(&uid);
            self.plans.lock().remove(key);
        }
        Ok(Ruling { again: written, set: ground.told, ..ruling })
    }

    /// Finds what those are put back to whose gate says so. Who has nothing to go back to stays as it is.
    async fn find_back(
        &self,
        ground: &Ground<'_>,
        memory: &mut Memory,
        owner: Owner<'_>,
        ruling: &mut Ruling,
    ) -> Result<(), PhaseError> {
        let wanted = ruling.gates.iter().filter_map(|(name, ruled)| match &ruled.gate {
            Gate::Back { pin } => Some((name.clone(), pin.clone())),
            _ => None,
        });
        let wanted: BTreeMap<Arc<str>, Arc<str>> = wanted.collect();
        let found = memory.good.specs(&ground.api.revisions, owner, &wanted).await;
        ruling.back = found.map_err(PhaseError::ReadGood)?;
        let lost: Vec<Arc<str>> = wanted.into_keys().filter(|name| !ruling.back.contains_key(name)).collect();
        for name in &lost {
            if let Some(ruled) = ruling.gates.get_mut(name) {
                ruled.gate = Gate::Held("the good state it is to be put back to is gone".to_owned());
            }
        }
        if let Some(first) = lost.first() {
            let message = format!(
                "{} Applications cannot be put back, {first} among them: the ControllerRevision with their good state \
                 is gone; set them right by hand, or commit something newer",
                lost.len()
            );
            ruling.notices.push(error("GoodStateLost", message));
        }
        Ok(())
    }

    /// Takes what Applications were put back from off the record. False if the set has changed.
    ///
    /// It is done as soon as the way back is stored, and so before the rollout that comes next could fail and look for
    /// what to go back to. An old status would take away what has proved good since: the set is read once more.
    async fn withdraw_good(
        &self,
        ground: &mut Ground<'_>,
        memory: &mut Memory,
        judged: &[Judged],
    ) -> Result<bool, PhaseError> {
        let back = || judged.iter().flat_map(|judged| &judged.decision.back);
        if !memory.good.is_to_withdraw(back()) {
            return Ok(true);
        }
        if !self.is_current(ground, memory).await? {
            return Ok(false);
        }
        let withdrawn = memory.good.withdraw(&ground.api.revisions, back()).await;
        withdrawn.map_err(PhaseError::KeepGood)?;
        Ok(true)
    }

    /// Records what has proved good. False if somebody else did as well.
    async fn keep_good(
        &self,
        ground: &Ground<'_>,
        memory: &mut Memory,
        owner: Owner<'_>,
        judged: &[Judged],
        ruling: &mut Ruling,
    ) -> Result<bool, PhaseError> {
        let proved = judged.iter().flat_map(|judged| {
            judged.decision.good.iter().map(|(application, pin)| Proved {
                application: application.clone(),
                pin: pin.clone(),
                spec: (ground.round.specs)(application),
                history: judged.history,
            })
        });
        let proved: Vec<Proved> = proved.collect();
        if proved.is_empty() {
            return Ok(true);
        }
        if memory.good.refused().is_some() {
            // It may have been granted since: the next round looks, and until then it is told already.
            memory.doubts_good = true;
            return Ok(true);
        }
        let kept = memory.good.keep(&ground.api.revisions, owner, proved).await;
        let kept = kept.map_err(PhaseError::KeepGood)?;
        if kept.changed {
            memory.doubts_good = true;
            return Ok(false);
        }
        if let Some((first, why)) = kept.not.first() {
            let message = format!(
                "the good states of {} Applications are not kept, so a rollback will not find them: {first}: {why}",
                kept.not.len()
            );
            let severity = Severity::Warning;
            ruling.notices.push(Notice { severity, reason: "GoodStateNotKept", message });
        }
        Ok(true)
    }

    /// Stores the next status by compare-and-swap. False if the set has changed.
    async fn store(
        &self,
        ground: &mut Ground<'_>,
        memory: &mut Memory,
        judged: &[Judged],
        next: &[GeneratorPhases],
    ) -> Result<bool, PhaseError> {
        let phases = match next.is_empty() {
            true => Value::Null,
            false => json!(next),
        };
        let bytes = phases.to_string().len();
        let patch = json!({"status": {"phases": phases}});
        let metadata = &ground.set.metadata;
        let seen = Seen { uid: &memory.uid, version: metadata.resource_version.as_deref() };
        let answer = match ground.api.sets.patch_status(&ground.key.name, patch, seen).await {
            Ok(answer) => answer,
            Err(error) if error.is_conflict() || error.is_not_found() => {
                memory.doubts_set = true;
                return Ok(false);
            }
            Err(why) if why.is_too_large() => return Err(PhaseError::TooLarge { bytes, why }),
            Err(error) => return Err(PhaseError::Status(error)),
        };
        if phases_of(&answer).as_deref() != Some(next) {
            return Err(PhaseError::NotKept);
        }
        let whole = judged.iter().filter_map(|it| Some((it.generator, it.decision.status.clone()?)));
        memory.stored(next.to_vec(), whole.collect());
        ground.learn(memory, answer);
        Ok(true)
    }

    /// Tells what became of what people asked for, once that is stored.
    fn tell_answers(&self, ground: &Ground<'_>, judged: &[Judged]) {
        for judged in judged {
            let rollout = judged.status.as_ref().map(|status| status.rollout_id.as_str()).unwrap_or_default();
            for answer in &judged.decision.answers {
                let manager = ground.told.as_ref().and_then(|raw| manager_of(raw, answer.ask));
                let asked = Asked { generator: judged.generator, rollout, answer };
                self.audit.answered(ground.set, &asked, manager);
            }
        }
    }

    /// Whether the set still says what was decided on. What a cache shows may be old, even where it is what was last written
    /// here, and what was recorded since must not be called again.
    async fn is_current(&self, ground: &mut Ground<'_>, memory: &mut Memory) -> Result<bool, PhaseError> {
        let found = ground.api.sets.get(&ground.key.name).await.map_err(PhaseError::Set)?;
        let Some(raw) = found.filter(|raw| raw["metadata"]["uid"] == *memory.uid) else {
            memory.doubts_set = true;
            return Ok(false);
        };
        let same = phases_of(&raw).as_deref() == Some(&ground.set.status.phases)
            && raw["metadata"]["deletionTimestamp"].is_null();
        // Where nothing has changed, there is nothing to tell.
        if version_of(&raw) != version(ground.set) {
            ground.learn(memory, raw);
        }
        Ok(same)
    }

    fn make_calls(&self, ground: &Ground<'_>, policy: &LanguagePolicy, judged: &[Judged]) {
        for judged in judged {
            for call in &judged.decision.calls {
                let Some(what) = what(judged, call) else {
                    tracing::error!(application_set = %ground.key, hook = %call.name, "it is written nowhere");
                    continue;
                };
                let targets = ground.round.targets.get(&judged.generator).into_iter().flatten();
                let mut targets = targets.filter(|target| target.name == call.key.target);
                let params = targets.next().map(|target| {
                    let nested = || (ground.round.params)(&target.name);
                    params::for_template(policy.language, &target.params, nested)
                });
                let prepared = Prepared {
                    set: SetName {
                        namespace: ground.key.namespace.to_string(),
                        name: ground.key.name.to_string(),
                    },
                    call: call.clone(),
                    what,
                    params: params.unwrap_or_else(|| baton_template::Map::new([])),
                    policy: policy.policy.clone(),
                };
                self.calls.begin(ground.key, ground.set, prepared);
            }
        }
    }
}

impl Api {
    pub(super) fn new(phases: &Phases, key: &ObjectKey) -> Api {
        let objects = |api_version: &str, plural: &str| {
            Objects::new(phases.client.clone(), api_version, plural, &key.namespace, false)
                .managed_by(MANAGER)
        };
        Api {
            sets: objects(names::API_VERSION, "applicationsets"),
            maps: objects("v1", "configmaps"),
            revisions: objects("apps/v1", "controllerrevisions"),
        }
    }
}

impl Ground<'_> {
    /// Nothing was done, and the set is to be looked at again.
    fn changed(self) -> Ruling {
        let held = Ruling::held(self.round, version(self.set), CHANGED);
        Ruling { again: true, set: self.told, ..held }
    }

    /// Keeps what the API told of the set.
    fn learn(&mut self, memory: &mut Memory, raw: Value) {
        if version_of(&raw) >= memory.sure {
            memory.learn(raw.clone());
            self.told = Some(raw);
        }
    }
}

/// Has annotations say what the status does. False if that is to be tried again.
async fn mirrored(ground: &mut Ground<'_>, memory: &mut Memory, next: &[GeneratorPhases]) -> bool {
    let none = BTreeMap::new();
    let present = ground.set.metadata.annotations.as_ref().unwrap_or(&none);
    let changes = mirror::annotations(next, present);
    if changes.is_empty() || changes == memory.refused_mirror {
        return true;
    }
    let patch = json!({"metadata": {"annotations": changes}});
    // Annotations only tell: whatever else of the set has changed does not matter.
    let seen = Seen { uid: &memory.uid, version: None };
    match ground.api.sets.patch(&ground.key.name, patch, seen).await {
        Ok(answer) => {
            memory.refused_mirror.clear();
            ground.learn(memory, answer);
            true
        }
        Err(error) if error.is_conflict() || error.is_not_found() => true,
        Err(error) => {
            tracing::warn!(application_set = %ground.key, %error, "annotations do not tell of phases");
            let refused = matches!(error, ApiError::Refused { code: 400..=407 | 410..=428, .. });
            if refused {
                memory.refused_mirror = changes;
            }
            refused
        }
    }
}

/// What all generators together rule.
fn rule(judged: &[Judged], version: u64) -> Ruling {
    let mut ruling = Ruling { version, outlook: Some(outlook_of(judged)), ..Ruling::default() };
    for judged in judged {
        let (generator, decision) = (judged.generator, &judged.decision);
        let phases = decision.status.as_ref().map(|status| status.phases.as_slice()).unwrap_or_default();
        let places: BTreeMap<&str, usize> = phases
            .iter()
            .enumerate()
            .flat_map(|(at, phase)| phase.applications.iter().map(move |entry| (entry.name.as_str(), at)))
            .collect();
        for (name, gate) in &decision.gates {
            let place = match gate {
                Gate::Open { phase } => *phase,
                _ => places.get(&**name).copied().unwrap_or(phases.len()),
            };
            ruling.rule(name.clone(), Ruled { gate: gate.clone(), group: (generator, place) });
        }
        let limits = decision.limits.iter().enumerate();
        ruling.limits.extend(limits.filter_map(|(at, limit)| Some(((generator, at), (*limit)?))));
        ruling.terminate.extend(decision.terminate.iter().cloned());
        ruling.list |= decision.list;
        ruling.waits.extend(decision.waits.iter().cloned());
        ruling.notices.extend(decision.notices.iter().cloned());
        ruling.wake = [ruling.wake, decision.wake].into_iter().flatten().min();
    }
    ruling
}

/// How the phases stand together. Those that cannot be followed go nowhere, whatever is stored of them: when nothing else
/// is under way, that is the end.
fn outlook_of(judged: &[Judged]) -> Outlook {
    let followed = judged.iter().filter(|judged| judged.decision.invalid.is_none());
    let statuses: Vec<GeneratorPhases> = followed.filter_map(|judged| judged.status.clone()).collect();
    let invalid = judged.iter().find_map(|judged| judged.decision.invalid.clone());
    match (outlook(&statuses), invalid) {
        (Outlook::Done, Some(why)) => Outlook::Failed(why),
        (outlook, _) => outlook,
    }
}

/// What a call calls, as it is written.
fn what(judged: &Judged, call: &baton_phases::Call) -> Option<What> {
    let phase = judged.written.as_ref()?.phases.get(call.key.phase)?;
    let hook = |hooks: &[baton_api::phases::Hook]| {
        let hook = hooks.get(call.key.place).filter(|hook| *hook.name == *call.name)?;
        Some(What::Hook(Box::new(hook.clone())))
    };
    match call.key.role {
        Role::PreHook => hook(&phase.pre_hooks),
        Role::PostHook => hook(&phase.post_hooks),
        Role::Check => {
            let check = phase.checks.get(call.key.place).filter(|check| *check.name == *call.name)?;
            Some(What::Check(Box::new(check.clone())))
        }
    }
}

/// Whether annotations of a set tell of phases.
fn is_mirrored(set: &ApplicationSet) -> bool {
    let ours = |name: &String| name.starts_with(PHASE_PREFIX) || name.starts_with(ROLLBACK_PHASE_PREFIX);
    set.metadata.annotations.iter().flatten().any(|(name, _)| ours(name))
}

fn phases_of(raw: &Value) -> Option<Vec<GeneratorPhases>> {
    match &raw["status"]["phases"] {
        Value::Null => Some(Vec::new()),
        phases => Vec::deserialize(phases).ok(),
    }
}

fn error(reason: &'static str, message: String) -> Notice {
    Notice { severity: Severity::Error, reason, message }
}
