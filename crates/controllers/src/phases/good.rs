//! Good states of Applications, kept as ControllerRevisions that the set owns.
//!
//! Which there are is remembered; what they hold is read when an Application is put back to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_phases::history::{GoodState, keep, last_good, put_away};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::names::Owner;
use crate::objects::{ApiError, Objects, Seen};

/// Most bytes of a specification that is kept.
const MOST_BYTES: usize = 512 << 10;
/// How many are written or read at once.
const AT_ONCE: usize = 10;
/// More than so many are read by one list.
const FEW: usize = 10;
/// Most good states of Applications that no generator gives any more.
const MOST_LEFT_OVER: usize = 1000;

/// The good states of a set's Applications.
#[derive(Debug, Default)]
pub(super) struct GoodStates {
    known: BTreeMap<Arc<str>, Vec<Record>>,
    /// What those hold that Applications are put back to now, by Application.
    specs: BTreeMap<Arc<str>, (Arc<str>, Arc<Value>)>,
    /// What the API said when the controller had no right to read them.
    refused: Option<String>,
}

#[derive(Debug, Clone)]
struct Record {
    state: GoodState,
    name: String,
    uid: String,
}

/// A state that has proved good.
pub(super) struct Proved {
    pub(super) application: Arc<str>,
    pub(super) pin: Arc<str>,
    /// None where it is not known.
    pub(super) spec: Option<Value>,
    /// How many earlier ones are kept.
    pub(super) history: usize,
}

/// What became of keeping.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Applications whose state is not kept, and why.
    pub(super) not: Vec<(Arc<str>, String)>,
    /// Whether somebody else has written as well, so that all has to be read anew.
    pub(super) changed: bool,
}

// === impl GoodStates ===

impl GoodStates {
    /// Reads which good states there are. Where that is not allowed, there are none.
    pub(super) async fn load(objects: &Objects, owner: Owner<'_>) -> Result<GoodStates, ApiError> {
        let mut states = GoodStates::default();
        let selector = owner.selector();
        let listed = objects.each(Some(&selector), |object| {
            if owner.owns(&object) {
                states.learn(&object);
            }
        });
        match listed.await {
            Ok(_) => Ok(states),
            Err(error) if error.is_forbidden() => {
                tracing::warn!(namespace = owner.namespace, application_set = owner.name, %error,
                    "good states are not read: let the controller list ControllerRevisions");
                Ok(GoodStates { refused: Some(error.to_string()), ..GoodStates::default() })
            }
            Err(error) => Err(error),
        }
    }

    /// The newest good pin of an Application that is not the run's.
    pub(super) fn last(&self, application: &str, of_run: &str) -> Option<Arc<str>> {
        let known = states(self.known.get(application)?);
        last_good(&known, of_run).map(|state| state.pin.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What the API said, where it does not let good states be read.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Records states that have proved good, and drops those that are not kept beside them.
    pub(super) async fn keep(
        &mut self,
        objects: &Objects,
        owner: Owner<'_>,
        proved: Vec<Proved>,
    ) -> Result<Kept, ApiError> {
        let mut kept = Kept::default();
        let mut creations = Vec::new();
        let mut drops = Vec::new();
        for proved in proved {
            let records = self.known.get(&proved.application).map(Vec::as_slice).unwrap_or_default();
            let keeping = keep(&states(records), &proved.pin, proved.history);
            drops.push((proved.application.clone(), keeping.drop));
            let Some(revision) = keeping.record else { continue };
            match object(owner, &proved, revision) {
                Ok(object) => creations.push((proved.application, object)),
                Err(why) => {
                    drops.pop();
                    kept.not.push((proved.application, why));
                }
            }
        }
        let creations = creations.into_iter().map(|(application, object)| async move {
            let created = create(objects, owner, &object).await;
            (application, created)
        });
        let creations: Vec<_> = creations.collect();
        let answers: Vec<_> = stream::iter(creations).buffered(AT_ONCE).collect().await;
        let mut failed = None;
        let mut unkept = BTreeSet::new();
        for (application, answer) in answers {
            match answer {
                Ok(object) => drop(self.learn(&object)),
                Err(error) if error.is_conflict() => kept.changed = true,
                Err(error) if error.is_forbidden() || error.is_invalid() || error.is_too_large() => {
                    unkept.insert(application.clone());
                    kept.not.push((application, error.to_string()));
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if !kept.changed {
            // The old ones go only when the new one is there.
            let names = drops.iter().filter(|(application, _)| !unkept.contains(application));
            let names = names.flat_map(|(application, numbers)| {
                let records = self.known.get(application).into_iter().flatten();
                records.filter(move |record| numbers.contains(&record.state.revision)).cloned()
            });
            let names: Vec<Record> = names.collect();
            let _ = self.delete(objects, names).await;
        }
        Ok(kept)
    }

    /// Whether states are on record that these Applications, which are put back, were put back from.
    pub(super) fn is_to_withdraw<'b>(
        &self,
        mut back: impl Iterator<Item = &'b (Arc<str>, Arc<str>)>,
    ) -> bool {
        back.any(|(name, pin)| !self.put_away(name, pin).is_empty())
    }

    /// Drops those states. Where that is not allowed, this process at least does not go back to them.
    pub(super) async fn withdraw<'b>(
        &mut self,
        objects: &Objects,
        back: impl Iterator<Item = &'b (Arc<str>, Arc<str>)>,
    ) -> Result<(), ApiError> {
        let records: Vec<Record> = back.flat_map(|(name, pin)| self.put_away(name, pin)).collect();
        let names: BTreeSet<String> = records.iter().map(|record| record.name.clone()).collect();
        match self.delete(objects, records).await {
            Some(error) if error.is_forbidden() => {
                self.known
                    .values_mut()
                    .for_each(|records| records.retain(|record| !names.contains(&record.name)));
                Ok(())
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn put_away(&self, application: &str, pin: &str) -> Vec<Record> {
        let Some(records) = self.known.get(application) else { return Vec::new() };
        let numbers = put_away(&states(records), pin);
        records.iter().filter(|record| numbers.contains(&record.state.revision)).cloned().collect()
    }

    /// Drops states of Applications that are gone, where there are too many.
    pub(super) async fn trim(&mut self, objects: &Objects, is_known: impl Fn(&str) -> bool) {
        let left_over =
            self.known.iter().filter(|(name, _)| !is_known(name)).flat_map(|(_, records)| records);
        let left_over: Vec<Record> = left_over.skip(MOST_LEFT_OVER).cloned().collect();
        if !left_over.is_empty() {
            let _ = self.delete(objects, left_over).await;
        }
    }

    /// The specifications that Applications are put back to, as far as they are on record. Others are no longer held.
    pub(super) async fn specs(
        &mut self,
        objects: &Objects,
        owner: Owner<'_>,
        wanted: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> Result<BTreeMap<Arc<str>, Arc<Value>>, ApiError> {
        self.specs.retain(|name, (pin, _)| wanted.get(name) == Some(pin));
        let mut missing: BTreeMap<String, (Arc<str>, Arc<str>)> = BTreeMap::new();
        for (application, pin) in wanted.iter().filter(|(name, _)| !self.specs.contains_key(*name)) {
            let records = self.known.get(application).into_iter().flatten();
            let newest =
                records.filter(|record| record.state.pin == *pin).max_by_key(|record| record.state.revision);
            if let Some(record) = newest {
                missing.insert(record.name.clone(), (application.clone(), pin.clone()));
            }
        }
        let mut found = Vec::new();
        match missing.len() <= FEW {
            true => {
                for name in missing.keys() {
                    found.extend(objects.get(name).await?);
                }
            }
            false => {
                let wanted = |object: &Value| {
                    object["metadata"]["name"].as_str().is_some_and(|name| missing.contains_key(name))
                };
                let each = |object| {
                    if wanted(&object) {
                        found.push(object);
                    }
                };
                objects.each(Some(&owner.selector()), each).await?;
            }
        }
        for mut object in found.into_iter().filter(|object| owner.owns(object)) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let Some((application, pin)) = missing.remove(name) else { continue };
            let spec = object["data"]["spec"].take();
            if object["data"]["pin"] == *pin && spec.is_object() {
                self.specs.insert(application, (pin, Arc::new(spec)));
            }
        }
        // What somebody took away is not looked for again.
        for (name, (application, _)) in missing {
            if let Some(records) = self.known.get_mut(&application) {
                records.retain(|record| record.name != name);
            }
        }
        Ok(self.specs.iter().map(|(name, (_, spec))| (name.clone(), spec.clone())).collect())
    }

    /// Deletes records. Gives the first error, where one stays for that.
    async fn delete(&mut self, objects: &Objects, records: Vec<Record>) -> Option<ApiError> {
        let deletions = records.into_iter().map(|record| async move {
            let deleted = objects.delete(&record.name, Seen { uid: &record.uid, version: None }).await;
            (record, deleted)
        });
        let deletions: Vec<_> = deletions.collect();
        let answers: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
        let (mut gone, mut first) = (BTreeSet::new(), None);
        for (record, deleted) in answers {
            match deleted {
                Err(error) if !error.is_conflict() => {
                    tracing::warn!(revision = record.name, %error, "a good state that is not kept is not deleted");
                    first = first.or(Some(error));
                }
                _ => drop(gone.insert(record.name)),
            }
        }
        for records in self.known.values_mut() {
            records.retain(|record| !gone.contains(&record.name));
        }
        self.known.retain(|_, records| !records.is_empty());
        first
    }

    fn learn(&mut self, object: &Value) -> Option<()> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let application: Arc<str> = object["data"]["application"].as_str()?.into();
        let state =
            GoodState { revision: object["revision"].as_i64()?, pin: object["data"]["pin"].as_str()?.into() };
        let metadata = &object["metadata"];
        let record = Record { state, name: text(&metadata["name"])?, uid: text(&metadata["uid"])? };
        let records = self.known.entry(application).or_default();
        records.retain(|known| known.name != record.name);
        records.push(record);
        Some(())
    }
}

fn states(records: &[Record]) -> Vec<GoodState> {
    records.iter().map(|record| record.state.clone()).collect()
}

/// The object that keeps a state.
fn object(owner: Owner<'_>, proved: &Proved, revision: i64) -> Result<Value, String> {
    let Some(spec) = &proved.spec else { return Err("its specification is not known".to_owned()) };
    let bytes = serde_json::to_vec(spec).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MOST_BYTES {
        return Err(format!(
            "its specification takes {bytes} bytes, more than the {MOST_BYTES} that are kept"
        ));
    }
    let application = &*proved.application;
    let name = owner.good_name(application, revision);
    Ok(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": owner.metadata(&name, Some(application)),
        "revision": revision,
        "data": {"application": application, "pin": &*proved.pin, "spec": spec},
    }))
}

/// Creates a record. One that is there already and says the same was created by an attempt whose answer was lost.
async fn create(objects: &Objects, owner: Owner<'_>, object: &Value) -> Result<Value, ApiError> {
    match objects.create(object).await {
        Err(error) if error.is_already_exists() => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let found = objects.get(name).await?.filter(|found| owner.owns(found));
            found.filter(|found| found["data"]["pin"] == object["data"]["pin"]).ok_or(ApiError::Refused {
                code: 409,
                reason: "Conflict".to_owned(),
                message: "another good state was recorded under this number".to_owned(),
            })
        }
        other => other,
    }
}
