//! The end of a set: its Applications go in their order, together, or stay; then it may go.

use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::names::finalizer;
use baton_rollout::deletion::Order;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conditions::Standing;
use super::destinations::Destinations;
use super::execute::{Executor, Release};
use super::fuse::Throttle;
use super::guard::Cascade;
use super::status::Findings;
use super::{Memory, PassError, Reconciler, order, seen};
use crate::cache::{ObjectKey, Observed, Whole};

impl Reconciler {
    /// Puts the finalizer on a set whose Applications go in an order, so that it cannot go before them. Tells the set
    /// as it is then; none if it changed meanwhile.
    pub(super) async fn hold(&self, key: &ObjectKey, set: Whole) -> Result<Option<Whole>, PassError> {
        let finalizers = set.metadata.finalizers.as_deref().unwrap_or_default();
        if !order::is_guarded(&set) || is_held(&set) || self.settings.dry_run {
            return Ok(Some(set));
        }
        let held: Vec<&str> =
            finalizers.iter().map(String::as_str).chain(std::iter::once(finalizer::RESOURCES)).collect();
        let patch = json!({"metadata": {"finalizers": held}});
        match self.sets(key).patch(&key.name, patch, seen(&set)).await {
            Ok(answer) => Ok(self.fold_answer(key, &answer)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.doubting(key, error, PassError::Update)),
        }
    }

    /// A set that is being deleted.
    pub(super) async fn let_go(
        &self,
        key: &ObjectKey,
        set: Whole,
        memory: &mut Memory,
    ) -> Result<Option<Duration>, PassError> {
        let policy = self.settings.policy_of(set.spec.sync_policy.as_ref());
        let owned = || self.known.applications.lock().owned_by(key);
        if !order::is_guarded(&set) && !owned().values().any(|record| record.guarded) {
            if !policy.allows_delete() {
                self.release_all(key, &set, owned().into_keys()).await?;
            }
            self.let_set_go(key, &set).await?;
            return Ok(None);
        }
        if !is_held(&set) {
            // Somebody took the finalizer: the set goes without us, and what becomes of its Applications is decided
            // when it is gone.
            return Ok(None);
        }
        // Whoever changes his mind writes to the set.
        let version = set.metadata.resource_version.clone();
        let cascade = match memory.teardown.asked_at == version {
            true => Cascade::Delete,
            false => self.cascade(key, &set).await?,
        };
        if cascade == Cascade::Delete {
            memory.teardown.asked_at = version;
        }
        if !policy.allows_delete() || cascade == Cascade::Orphan {
            let names = self.members(key, &set).await?;
            self.release_all(key, &set, names.into_iter()).await?;
            return self.finish(key, &set, memory).await;
        }
        match order::deletion(&set) {
            Err(invalid) => {
                let standing = Standing { invalid: Some(invalid.advice()), ..Standing::default() };
                let findings = Findings { standing: Some(&standing), ..Findings::default() };
                self.write_status(key, set, &findings).await?;
                Ok(None)
            }
            Ok(Order::AllAtOnce) => self.finish(key, &set, memory).await,
            Ok(order) => self.go_in_order(key, set, memory, &order).await,
        }
    }

    /// A set that is gone although its Applications are guarded: somebody took its finalizer away. They then fare as
    /// they would without a guard: the garbage collector takes them, unless they were to stay.
    pub(super) async fn reap(&self, key: &ObjectKey, memory: &mut Memory) -> Result<(), PassError> {
        let owned = self.known.applications.lock().owned_by(key);
        if memory.guard.is_none() && !memory.headed && !owned.values().any(|record| record.guarded) {
            return Ok(());
        }
        if self.sets(key).get(&key.name).await.map_err(PassError::Read)?.is_some() {
            // There is a new one, which the watch will show.
            return Ok(());
        }
        if self.witnessed(key, |owners| !owners.is_empty()).await? == Cascade::Orphan {
            let set = ApplicationSet {
                metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    name: Some(key.name.to_string()),
                    namespace: Some(key.namespace.to_string()),
                    ..Default::default()
                },
                ..ApplicationSet::default()
            };
            let names = self.members(key, &set).await?;
            self.release_all(key, &set, names.into_iter()).await?;
        }
        self.remove_guard(key, memory, false).await
    }

    /// Notes that a set which is not there may have left its guard or the head of its rollout.
    pub(crate) fn note_left(&self, key: &ObjectKey) {
        self.memories.lock().entry(key.clone()).or_default().headed = true;
    }

    /// A set that deletes in no order any more: its Applications lose their guard.
    pub(super) async fn unguard(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        memory: &mut Memory,
    ) -> Result<(), PassError> {
        let owned = self.known.applications.lock().owned_by(key);
        let guarded: Vec<Arc<str>> =
            owned.iter().filter(|(_, record)| record.guarded).map(|(name, _)| name.clone()).collect();
        if order::is_guarded(set) || (guarded.is_empty() && memory.guard.is_none()) {
            return Ok(());
        }
        let executor = self.executor(key, set, false);
        for name in &guarded {
            let released = executor.release(name, Release::Guard).await;
            released
                .map_err(|error| PassError::Release { name: name.to_string(), why: error.to_string() })?;
        }
        self.remove_guard(key, memory, order::rolls(set, &self.settings)).await
    }

    async fn go_in_order(
        &self,
        key: &ObjectKey,
        set: Whole,
        memory: &mut Memory,
        order: &Order,
    ) -> Result<Option<Duration>, PassError> {
        let clusters = self.known.secrets.lock().clusters();
        let destinations = Destinations::new(&clusters, self.known.in_cluster_enabled());
        let executor = self.executor(key, &set, false);
        let report = self
            .tear_down(&executor, &mut memory.teardown, order, None, &destinations)
            .await
            .map_err(|error| PassError::Applications(error.to_string()))?;
        if report.done {
            return self.finish(key, &set, memory).await;
        }
        for stuck in &report.stuck {
            self.warn(&set, "ApplicationStuck", stuck.clone());
        }
        let standing = Standing { deleting: Some(report.condition), ..Standing::default() };
        let findings = Findings {
            standing: Some(&standing),
            deletion: Some(Some(&report.status)),
            applications: None,
            ..Findings::default()
        };
        if memory.teardown_writes.may(&report.status, self.settings.clock.now()) {
            let written = self.write_status(key, set, &findings).await;
            if written.is_err() {
                memory.teardown_writes = Throttle::default();
            }
            written?;
        }
        Ok(report.wake)
    }

    /// The last steps: nothing is left to be kept in order.
    async fn finish(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        memory: &mut Memory,
    ) -> Result<Option<Duration>, PassError> {
        self.remove_guard(key, memory, false).await?;
        self.let_set_go(key, set).await?;
        Ok(None)
    }

    async fn let_set_go(&self, key: &ObjectKey, set: &ApplicationSet) -> Result<(), PassError> {
        if !is_held(set) {
            return Ok(());
        }
        let finalizers = set.metadata.finalizers.as_deref().unwrap_or_default();
        let left: Vec<&String> = finalizers.iter().filter(|name| *name != finalizer::RESOURCES).collect();
        let patch = json!({"metadata": {"finalizers": left}});
        match self.sets(key).patch(&key.name, patch, seen(set)).await {
            Ok(answer) => self.fold_set(key, &answer),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(self.doubting(key, error, PassError::Update)),
        }
        Ok(())
    }

    /// The names of the set's Applications, by a consistent read of the namespace.
    async fn members(&self, key: &ObjectKey, set: &ApplicationSet) -> Result<Vec<Arc<str>>, PassError> {
        let executor = self.executor(key, set, false);
        let mut names: Vec<Arc<str>> = Vec::new();
        let each = |live: Value| {
            let Ok(observed) = Observed::deserialize(&live) else { return };
            if observed.owner.as_deref() == Some(&*key.name) {
                names.push(observed.metadata.name.as_deref().unwrap_or_default().into());
            }
        };
        executor.objects.each_of_all(each).await.map_err(PassError::Read)?;
        Ok(names)
    }

    async fn release_all(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        names: impl Iterator<Item = Arc<str>>,
    ) -> Result<(), PassError> {
        let executor: Executor<'_> = self.executor(key, set, false);
        for name in names {
            let released = executor.release(&name, Release::Whole).await;
            released
                .map_err(|error| PassError::Release { name: name.to_string(), why: error.to_string() })?;
        }
        Ok(())
    }
}

fn is_held(set: &ApplicationSet) -> bool {
    let finalizers = set.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == finalizer::RESOURCES)
}
