//! What a controller remembers of an Application between passes. All of it can be found out anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::object::ResourceKey;
use baton_api::source::Source;
use baton_manifests::Rendered;
use jiff::Timestamp;
use tokio::time::Instant;

use super::compare::Basis;
use crate::digest::{Digest, Hasher};

/// What is remembered.
#[derive(Default)]
pub(super) struct Memory {
    /// When the newest revision was compared last.
    pub(super) compared: Option<Timestamp>,
    /// When manifests were last rendered anew although nothing had changed.
    pub(super) compared_hard: Option<Timestamp>,
    /// The server of the cluster that was compared with last.
    pub(super) deployed_to: Option<Arc<str>>,
    /// Until when an operation rests between two waves.
    pause: Option<Instant>,
    /// Since when manifests cannot be rendered.
    pub(super) failing: Option<Timestamp>,
    /// What was rendered last, from which inputs; kept only where it may be given back.
    rendered: Option<(Digest, Arc<Rendered>)>,
    /// Of the objects that were rendered last.
    last_digest: Option<[u8; 32]>,
    verdicts: BTreeMap<ResourceKey, Verdict>,
    /// What an Application that is being deleted, by its UID, was found to have no longer.
    gone: (Option<Arc<str>>, BTreeSet<ResourceKey>),
}

/// Whether a target and a live object differ, and what was looked at to tell.
pub(super) struct Verdict {
    pub(super) basis: Basis,
    pub(super) modified: bool,
}

impl Memory {
    /// Everything but the revisions that manifests depend on.
    pub(super) fn inputs(
        application: &Application,
        sources: &[Source],
        kube_version: &str,
        api_versions: &[String],
    ) -> Digest {
        let mut hasher = Hasher::new();
        let spec = &application.spec;
        hasher.json(&serde_json::to_value(sources).unwrap_or_default());
        for text in [spec.project.as_str(), &spec.destination.namespace, kube_version] {
            hasher.str(text);
        }
        api_versions.iter().for_each(|version| hasher.str(version));
        hasher.finish()
    }

    /// What was rendered last, if it was from the same inputs.
    pub(super) fn rendered_from(&self, inputs: Digest) -> Option<Arc<Rendered>> {
        let (known, rendered) = self.rendered.as_ref()?;
        (*known == inputs).then(|| rendered.clone())
    }

    /// Of the objects that were rendered last.
    pub(super) fn last_digest(&self) -> Option<[u8; 32]> {
        self.last_digest
    }

    /// Keeps what was rendered; whole only if a later rendering may give it back.
    pub(super) fn remember(&mut self, inputs: Digest, rendered: &Arc<Rendered>, whole: bool) {
        self.last_digest = Some(rendered.digest);
        self.rendered = whole.then(|| (inputs, rendered.clone()));
    }

    /// What is known about a pair that has not changed.
    pub(super) fn verdict(&self, key: &ResourceKey, basis: &Basis) -> Option<bool> {
        self.verdicts.get(key).filter(|verdict| verdict.basis == *basis).map(|verdict| verdict.modified)
    }

    pub(super) fn learn(&mut self, key: ResourceKey, verdict: Verdict) {
        self.verdicts.insert(key, verdict);
    }

    /// Has the operation rest for a while, for other controllers to take notice of a wave.
    pub(super) fn pause_for(&mut self, pause: Duration) {
        self.pause = Some(Instant::now() + pause);
    }

    /// How long the operation still rests.
    pub(super) fn pause_left(&self) -> Option<Duration> {
        let left = self.pause?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn end_pause(&mut self) {
        self.pause = None;
    }

    /// Leaves out what was found to be gone.
    pub(super) fn leave_out_gone(&mut self, uid: Option<&str>, unseen: &mut BTreeMap<ResourceKey, String>) {
        if self.gone.0.as_deref() != uid {
            self.gone = (uid.map(Arc::from), BTreeSet::new());
        }
        unseen.retain(|key, _| !self.gone.1.contains(key));
    }

    pub(super) fn note_gone(&mut self, key: ResourceKey) {
        self.gone.1.insert(key);
    }

    /// Forgets objects that no longer matter.
    pub(super) fn keep_only(&mut self, matters: impl Fn(&ResourceKey) -> bool) {
        self.verdicts.retain(|key, _| matters(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_operation_rests_for_as_long_as_it_was_told_to() {
        let mut memory = Memory::default();
        assert_eq!(memory.pause_left(), None);
        memory.pause_for(Duration::from_secs(2));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(memory.pause_left(), Some(Duration::from_millis(1500)));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(memory.pause_left(), None);
    }

    #[test]
    fn what_was_rendered_is_given_back_only_for_the_same_inputs() {
        let rendered = Arc::new(Rendered {
            objects: Vec::new(),
            revisions: vec!["abc".to_owned()],
            source_types: Vec::new(),
            digest: [7; 32],
        });
        let application = Application::default();
        let inputs = Memory::inputs(&application, &[], "1.34", &[]);
        let mut memory = Memory::default();
        memory.remember(inputs, &rendered, false);
        assert_eq!((memory.last_digest(), memory.rendered_from(inputs)), (Some([7; 32]), None));
        memory.remember(inputs, &rendered, true);
        assert_eq!(memory.rendered_from(inputs), Some(rendered));
        let mut moved = application.clone();
        moved.spec.destination.namespace = "elsewhere".to_owned();
        for other in [
            Memory::inputs(&moved, &[], "1.34", &[]),
            Memory::inputs(&application, &[Source::default()], "1.34", &[]),
            Memory::inputs(&application, &[], "1.35", &[]),
            Memory::inputs(&application, &[], "1.34", &["apps/v1".to_owned()]),
        ] {
            assert_eq!(memory.rendered_from(other), None);
        }
    }
}
