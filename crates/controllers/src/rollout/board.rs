//! What the generation side hands over to the rollout side, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::source::Source;
use baton_phases::Target;
use baton_rollout::machine::{Back, Wanted};
use baton_rollout::pin::{Fingerprint, SourceKey};
use baton_sync::normalize;
use baton_template::Map;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::application_set::{IgnoreRules, comparable};
use crate::cache::ObjectKey;
use crate::digest::{Digest, Hasher};
use crate::queue::Queue;

/// A wanted Application of a set that keeps an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    /// Labels, which decide about its step.
    pub(crate) labels: BTreeMap<String, String>,
    /// Its specification as the template has it, normalised, in JSON.
    pub(crate) spec: Arc<str>,
    /// Of the specification, made comparable.
    pub(crate) print: Fingerprint,
    /// Its project.
    pub(crate) project: Arc<str>,
    /// Its sources, in order.
    pub(crate) sources: Vec<SourceKey>,
    /// Whether drift is healed.
    pub(crate) self_heal: bool,
}

/// What a set wants now.
#[derive(Debug)]
pub(crate) struct Offer {
    /// For the machine. What people ask for is not in it: it is read off the set when it is needed.
    pub(crate) wanted: Wanted,
    /// The Applications by name.
    pub(crate) templates: BTreeMap<Arc<str>, Arc<Template>>,
    /// Fields that are left alone in every Application.
    pub(crate) ignored: Arc<IgnoreRules>,
    /// Tells these rules from others.
    pub(crate) rules: Fingerprint,
    /// Generation of the set.
    pub(crate) generation: i64,
    /// Whether the set's policy allows specifications to be written.
    pub(crate) may_update: bool,
    /// What phases have a say in, where the set has any.
    pub(crate) phases: Option<Arc<Phased>>,
}

/// The Applications that phases have a say in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Phased {
    /// By place of their generator.
    pub(crate) targets: BTreeMap<usize, Vec<Target>>,
    /// By Application: the parameters of its generator with their types, where the set is written in Go templates.
    pub(crate) params: BTreeMap<Arc<str>, Typed>,
}

/// Parameters with their types. Two are the same where a template could not tell them apart.
#[derive(Clone)]
pub(crate) struct Typed {
    params: Map,
    digest: Digest,
}

/// What each set wants, or that it wants no order any more.
pub(crate) struct Board {
    notes: Mutex<BTreeMap<ObjectKey, Note>>,
    /// Of sets with phases: who may be created and changed.
    admitted: Mutex<BTreeMap<ObjectKey, BTreeMap<Arc<str>, Admission>>>,
    queue: Queue<ObjectKey>,
}

/// What phases let happen to an Application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may be created and changed.
    Whole,
    /// It is put back: it may be created where it is gone, as the way back starts from what is there, and is not changed to
    /// what it was put back from.
    Creation,
}

#[derive(Clone)]
enum Note {
    Offer(Arc<Offer>),
    /// The order has been given up; whether the rollout side has let go of it.
    Left {
        settled: bool,
    },
}

/// What the board says of a set.
pub(crate) enum Posted {
    /// The set is to be rolled out.
    Offer(Arc<Offer>),
    /// The set keeps no order any more, and what was begun is to be let go of.
    Leaving,
    /// Nothing.
    Nothing,
}

// === impl Typed ===

impl Typed {
    pub(crate) fn new(params: &Map) -> Typed {
        Typed { params: params.clone(), digest: Digest::of_params(params) }
    }

    /// The parameters, shared.
    pub(crate) fn params(&self) -> Map {
        self.params.clone()
    }
}

impl PartialEq for Typed {
    fn eq(&self, other: &Typed) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Typed {}

impl std::fmt::Debug for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Typed").field(&self.digest).finish()
    }
}

// === impl Template ===

impl Template {
    /// What an order needs to know of a rendered Application; none if it is no Application.
    pub(crate) fn read(application: &Value, ignored: &IgnoreRules) -> Option<Template> {
        let application = Application::deserialize(application).ok()?;
        let name = application.metadata.name.as_deref().unwrap_or_default();
        let spec = normalize::normalized(&application.spec).unwrap_or(application.spec);
        let automated = spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
        Some(Template {
            labels: application.metadata.labels.unwrap_or_default(),
            print: comparable(name, &spec, ignored).ok()?,
            project: spec.project.as_str().into(),
            sources: normalize::sources(&spec).iter().map(key_of).collect(),
            self_heal: spec.auto_syncs()
                && automated.is_some_and(|automated| automated.self_heal == Some(true)),
            spec: serde_json::to_string(&spec).ok()?.into(),
        })
    }
}

/// The revision that a source asks for.
pub(crate) fn key_of(source: &Source) -> SourceKey {
    SourceKey {
        repo: source.repo_url.as_str().into(),
        target: source.target_revision.as_str().into(),
        chart: source.chart.as_str().into(),
        tag_prefix: source.tag_prefix.as_str().into(),
    }
}

// === impl Offer ===

impl Offer {
    /// An offer that says nothing of members: why it is not known who belongs to the set.
    pub(crate) fn frozen(&self, why: &str) -> Offer {
        Offer {
            wanted: Wanted { frozen: Some(why.into()), ..self.wanted.clone() },
            templates: self.templates.clone(),
            ignored: self.ignored.clone(),
            rules: self.rules,
            generation: self.generation,
            may_update: self.may_update,
            phases: self.phases.clone(),
        }
    }

    /// What is followed while another offer waits for the end of a run: of the Applications that stay, what they were to
    /// be; `wanted` says what the machine makes of it.
    pub(crate) fn amended(&self, next: &Offer, wanted: Wanted) -> Offer {
        let templates = next
            .templates
            .iter()
            .map(|(name, template)| (name.clone(), self.templates.get(name).unwrap_or(template).clone()));
        Offer {
            wanted,
            templates: templates.collect(),
            ignored: self.ignored.clone(),
            rules: self.rules,
            generation: next.generation,
            may_update: self.may_update,
            phases: next.phases.clone(),
        }
    }

    /// The offer with some of its Applications as they were when they were good.
    pub(crate) fn put_back(&self, backs: &BTreeMap<Arc<str>, Arc<Value>>) -> Offer {
        let mut offer = self.frozen("");
        offer.wanted.frozen.clone_from(&self.wanted.frozen);
        for (name, spec) in backs {
            let Some(member) = offer.wanted.members.get_mut(name) else { continue };
            let labels = self.templates.get(name).map(|template| template.labels.clone());
            let application = json!({"metadata": {"name": name, "labels": labels}, "spec": **spec});
            let Some(template) = Template::read(&application, &self.ignored) else { continue };
            let revisions = template.sources.iter().map(|source| source.target.clone()).collect();
            member.back = Some(Back { spec: template.print, revisions });
            offer.templates.insert(name.clone(), Arc::new(template));
        }
        offer
    }

    /// An offer without any template.
    pub(crate) fn empty(wanted: Wanted) -> Offer {
        Offer {
            wanted,
            templates: BTreeMap::new(),
            ignored: Arc::default(),
            rules: Fingerprint::default(),
            generation: 0,
            may_update: false,
            phases: None,
        }
    }

    fn says_the_same(&self, other: &Offer) -> bool {
        self.wanted == other.wanted
            && self.rules == other.rules
            && self.generation == other.generation
            && self.may_update == other.may_update
            && self.templates == other.templates
            && self.phases == other.phases
    }
}

// === impl Board ===

impl Board {
    /// A board whose news wakes the keys of this queue.
    pub(crate) fn new(queue: Queue<ObjectKey>) -> Board {
        Board { notes: Mutex::default(), admitted: Mutex::default(), queue }
    }

    /// Posts what a set wants.
    pub(crate) fn post(&self, set: &ObjectKey, offer: Offer) {
        let mut notes = self.notes.lock();
        if let Some(Note::Offer(before)) = notes.get(set)
            && before.says_the_same(&offer)
        {
            return;
        }
        notes.insert(set.clone(), Note::Offer(Arc::new(offer)));
        drop(notes);
        self.queue.add(set.clone());
    }

    /// Posts that it is not known what a set wants; what it wanted before stays.
    /// Where it wanted nothing before, there is nothing to say.
    pub(crate) fn freeze(&self, set: &ObjectKey, why: &str) {
        let before = match self.notes.lock().get(set) {
            Some(Note::Offer(before)) => before.clone(),
            _ => return,
        };
        self.post(set, before.frozen(why));
    }

    /// Posts that a set keeps no order any more. Tells whether the rollout side has let go of it.
    pub(crate) fn leave(&self, set: &ObjectKey) -> bool {
        let mut notes = self.notes.lock();
        if let Some(Note::Left { settled }) = notes.get(set) {
            return *settled;
        }
        notes.insert(set.clone(), Note::Left { settled: false });
        drop(notes);
        self.queue.add(set.clone());
        false
    }

    /// The rollout side has let go of a set that keeps no order any more.
    pub(crate) fn settled(&self, set: &ObjectKey) {
        if let Some(note @ Note::Left { .. }) = self.notes.lock().get_mut(set) {
            *note = Note::Left { settled: true };
        }
    }

    /// The set is gone.
    pub(crate) fn forget(&self, set: &ObjectKey) {
        self.admitted.lock().remove(set);
        if self.notes.lock().remove(set).is_some() {
            self.queue.add(set.clone());
        }
    }

    /// Says which Applications of a set with phases may be created and changed. Tells whether those are others than before.
    pub(crate) fn admit(&self, set: &ObjectKey, names: BTreeMap<Arc<str>, Admission>) -> bool {
        let mut admitted = self.admitted.lock();
        let news = admitted.get(set) != Some(&names);
        admitted.insert(set.clone(), names);
        news
    }

    /// Tells one state of who may from another.
    pub(crate) fn describe(&self, set: &ObjectKey, hasher: &mut Hasher) {
        for (name, admission) in self.admitted.lock().get(set).into_iter().flatten() {
            hasher.str(name);
            hasher.number(u64::from(*admission == Admission::Whole));
        }
    }

    /// What phases let happen to an Application of the set; nothing where it is held.
    pub(crate) fn admission(&self, set: &ObjectKey, name: &str) -> Option<Admission> {
        self.admitted.lock().get(set)?.get(name).copied()
    }

    /// What is posted for a set.
    pub(crate) fn read(&self, set: &ObjectKey) -> Posted {
        match self.notes.lock().get(set) {
            Some(Note::Offer(offer)) => Posted::Offer(offer.clone()),
            Some(Note::Left { settled: false }) => Posted::Leaving,
            Some(Note::Left { settled: true }) | None => Posted::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_another_prefix_of_tags_asks_for_another_revision() {
        let source = |prefix: &str| Source {
            repo_url: "https://git.example.com/apps.git".into(),
            target_revision: "1.*".into(),
            tag_prefix: prefix.into(),
            ..Source::default()
        };
        assert_eq!(key_of(&source("web-")), key_of(&source("web-")));
        assert_ne!(key_of(&source("web-")), key_of(&source("db-")));
    }
}
