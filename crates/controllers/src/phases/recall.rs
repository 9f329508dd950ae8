//! What a controller that takes over has to know before it rules: who was put back, and to what.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::phase_status::PhaseApplicationState;
use serde_json::Value;

use super::good::GoodStates;
use super::names::Owner;
use super::told::PhaseError;
use super::{Phases, round};
use crate::cache::ObjectKey;

/// A pin, and the specification that belongs to it.
pub(crate) type GoodState = (Arc<str>, Arc<Value>);

impl Phases {
    /// Those whom the stored status tells to be put back, with what they are put back to. Whoever follows anything else at
    /// first would begin a run for it.
    ///
    /// # Errors
    /// The records cannot be read.
    pub(crate) async fn recall(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
    ) -> Result<BTreeMap<Arc<str>, GoodState>, PhaseError> {
        use PhaseApplicationState as State;
        let phases = set.status.phases.iter().flat_map(|generator| &generator.phases);
        let back = phases.flat_map(|phase| &phase.applications).filter(|entry| {
            matches!(entry.state, State::RollingBack | State::RolledBack | State::RollbackFailed)
        });
        let wanted: BTreeMap<Arc<str>, Arc<str>> =
            back.map(|entry| (entry.name.as_str().into(), entry.pin.as_str().into())).collect();
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let owner = Owner { name: &key.name, namespace: &key.namespace, uid };
        let revisions = round::Api::new(self, key).revisions;
        let mut good = GoodStates::load(&revisions, owner).await.map_err(PhaseError::ReadGood)?;
        let specs = good.specs(&revisions, owner, &wanted).await.map_err(PhaseError::ReadGood)?;
        let known = |(name, spec)| Some((Arc::clone(&name), (wanted.get(&name)?.clone(), spec)));
        Ok(specs.into_iter().filter_map(known).collect())
    }
}
