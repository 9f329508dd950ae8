//! ApplicationSets in a cluster, with the rights of a kubeconfig.

use std::collections::BTreeMap;

use baton_api::names::baton::{
    ABORT, ADVANCE, DELETION_APPROVED, PAUSED, RETRY, ROLLBACK, ROLLBACK_ALL, SKIP,
};
use baton_api::{Application, ApplicationSet};
use baton_rollout::pin::Fingerprint;
use futures::stream::BoxStream;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::super::head;
use super::{Creation, Told, Word, Written};
use crate::failure::Failure;
use crate::objects::{Objects, text};
use crate::session::Sight;
use crate::sight;

const PLURAL: &str = "applicationsets";
/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// The sets of one namespace.
pub(in crate::appset) struct InCluster {
    pub(in crate::appset) client: Client,
    pub(in crate::appset) namespace: String,
}

// === impl InCluster ===

impl InCluster {
    pub(in crate::appset) fn new(client: Client, namespace: &str) -> InCluster {
        InCluster { client, namespace: namespace.to_owned() }
    }

    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let api: Api<DynamicObject> = match everywhere {
            true => Api::all_with(self.client.clone(), &kind()),
            false => self.api(),
        };
        let parameters = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        api.list(&parameters).await?.iter().map(whole).collect()
    }

    pub(in crate::appset) async fn find(&self, name: &str) -> Result<Option<Value>, Failure> {
        let found = self.api().get_opt(name).await?;
        found.as_ref().map(whole).transpose()
    }

    /// The Applications of the namespace of a set.
    pub(in crate::appset) async fn applications(&self, set: &ApplicationSet) -> Result<Vec<Value>, Failure> {
        let kind = ApiResource::erase::<Application>(&());
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let mut found = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&parameters).await?;
            for object in &page.items {
                found.push(whole(object)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    pub(super) async fn create(
        &self,
        written: &Written,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        let namespace = written.set.metadata.namespace.as_deref().unwrap_or(&self.namespace);
        let name = written.set.metadata.name.as_deref().unwrap_or_default();
        let sets = Objects::new(self.client.clone(), PLURAL, namespace).dry_run(how.dry_run);
        let existing = if how.upsert { sets.find(name).await? } else { None };
        match existing {
            Some(existing) => {
                let version = text(&existing, "/metadata/resourceVersion");
                Ok((sets.replace(name, &written.document, &version).await?, "configured"))
            }
            None => Ok((sets.create(&written.document).await?, "created")),
        }
    }

    pub(super) async fn delete(&self, name: &str, keep_applications: bool) -> Result<(), Failure> {
        let policy =
            if keep_applications { PropagationPolicy::Orphan } else { PropagationPolicy::Background };
        let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        self.api().delete(name, &parameters).await?;
        Ok(())
    }

    pub(super) async fn tell(&self, set: &ApplicationSet, word: &Word) -> Result<Told, Failure> {
        match word {
            Word::Pause => {
                self.annotate(set, PAUSED, Some("true")).await?;
                // The head is what every decision rests on: with it the pause holds before the next write.
                let at_once = head::hold(&self.client, set, true).await?;
                return Ok(if at_once { Told::Now } else { Told::Later });
            }
            Word::Resume => {
                // The annotation goes last: its change is what the controller sees.
                head::hold(&self.client, set, false).await?;
                self.annotate(set, PAUSED, None).await?;
            }
            Word::Retry(names) if !names.is_empty() => {
                let request = format!("{}/{}", nonce(), names.join(","));
                self.annotate(set, RETRY, Some(&request)).await?;
            }
            Word::Skip(members) => {
                let annotations = set.metadata.annotations.as_ref();
                let mut skipped = skips(annotations.and_then(|all| all.get(SKIP)).map_or("", String::as_str));
                let known =
                    members.iter().filter_map(|(name, pin)| Some((name.clone(), (*pin)?.to_string())));
                skipped.extend(known);
                let all: Vec<String> = skipped.iter().map(|(name, pin)| format!("{name}={pin}")).collect();
                self.annotate(set, SKIP, Some(&all.join(","))).await?;
            }
            Word::Abort => self.annotate(set, ABORT, Some(&nonce())).await?,
            Word::Retry(_) => self.annotate(set, RETRY, Some(&nonce())).await?,
            Word::Advance => self.annotate(set, ADVANCE, Some(&nonce())).await?,
            Word::Rollback => self.annotate(set, ROLLBACK, Some(&nonce())).await?,
            Word::RollbackAll => self.annotate(set, ROLLBACK_ALL, Some(&nonce())).await?,
        }
        Ok(Told::Now)
    }

    pub(super) async fn approve_deletion(&self, seen: &Value, asked: &str) -> Result<(), Failure> {
        // Bound to the version that was shown: what changed meanwhile was not approved.
        let patch = json!({"metadata": {
            "resourceVersion": text(seen, "/metadata/resourceVersion"), "uid": text(seen, "/metadata/uid"),
            "annotations": {DELETION_APPROVED: asked},
        }});
        let sets = Objects::new(self.client.clone(), PLURAL, &self.namespace);
        match sets.merge(&text(seen, "/metadata/name"), &patch).await? {
            Some(_) => Ok(()),
            None => Err(Failure::waiting("the set changed meanwhile: look at it again")),
        }
    }

    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        sight::of(self.api(), name)
    }

    /// Writes an annotation of the set that was read, or takes it away.
    async fn annotate(&self, set: &ApplicationSet, key: &str, value: Option<&str>) -> Result<(), Failure> {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let patch = json!({
            // Another set of this name is not what the person looked at.
            "metadata": {"uid": set.metadata.uid, "annotations": {key: value}},
        });
        let sets = Objects::new(self.client.clone(), PLURAL, &self.namespace);
        let written = sets.merge(name, &patch).await?;
        written.map(drop).ok_or_else(|| Failure::api(format!("{name} is no longer the set it was")))
    }

    fn api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind())
    }
}

fn kind() -> ApiResource {
    ApiResource::erase::<ApplicationSet>(&())
}

fn whole(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::failed(error.to_string()))
}

/// A text that was never there before.
fn nonce() -> String {
    let second = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    format!("{second}-{:08x}", rand::random::<u32>())
}

/// Applications and pins of an annotation; what cannot be read counts for nobody and goes.
fn skips(text: &str) -> BTreeMap<String, String> {
    let entries = text.split(',').filter_map(|entry| entry.trim().split_once('='));
    let sound = entries.filter(|(name, pin)| !name.is_empty() && pin.parse::<Fingerprint>().is_ok());
    sound.map(|(name, pin)| (name.to_owned(), pin.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_that_can_be_read_are_kept() {
        let read = skips("a=0123456789abcdef, b=fedcba9876543210,c,=0123456789abcdef,d=xyz");
        assert_eq!(read.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_ne!(nonce(), nonce());
    }
}
