//! What is kept of one set that is being rolled out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application::ApplicationSpec;
use baton_api::project::SyncWindow;
use baton_rollout::live::Live;
use baton_rollout::machine::{Control, Machine, Wanted, Write};
use baton_rollout::pin::SourceKey;
use baton_sync::normalize;
use jiff::Timestamp;
use serde_json::Value;

use super::board::{Offer, key_of};
use super::head::Place;
use super::inbox::News;
use super::phasing::Phasing;
use super::resolve::Asked;
use super::sight::Sight;
use super::view::View;
use super::windows::Windows;
use crate::application_set::Automation;

/// One set that is being rolled out. Of its Applications no more is kept than the machine needs, and their live
/// specifications as text, from which patches are made.
pub(super) struct Desk {
    pub(super) machine: Machine,
    pub(super) place: Place,
    /// Whether the head may be another than the one known.
    pub(super) doubts_head: bool,
    /// Whether Applications may be others than those known.
    pub(super) doubts_applications: bool,
    pub(super) automation: Automation,
    pub(super) view: View,
    /// What the set wants.
    offer: Option<Arc<Offer>>,
    /// What the machine follows: the same, unless a run is to be finished first.
    followed: Option<Arc<Offer>>,
    control: Control,
    specs: BTreeMap<Arc<str>, Spec>,
    windows: Windows,
    /// What phases rule.
    pub(super) phasing: Phasing,
    /// Writes that failed in this pass: name, number and why.
    failed: Vec<(Arc<str>, u64, String)>,
}

struct Spec {
    uid: Arc<str>,
    version: u64,
    text: Box<str>,
}

impl Desk {
    pub(super) fn new(machine: Machine, place: Place) -> Desk {
        Desk {
            machine,
            place,
            doubts_head: false,
            doubts_applications: true,
            automation: Automation::Disabled,
            view: View::default(),
            offer: None,
            followed: None,
            control: Control::default(),
            specs: BTreeMap::new(),
            windows: Windows::default(),
            phasing: Phasing::default(),
            failed: Vec::new(),
        }
    }

    /// A write failed. The machine is not told before the pass is over, or it would ask for nothing else.
    pub(super) fn hold_back(&mut self, write: &Write, why: String) {
        self.failed.push((write.name.clone(), write.stamp.n, why));
    }

    /// Tells the machine of the writes that failed. Gives the first of them.
    pub(super) fn give_back(&mut self) -> Option<(Arc<str>, String)> {
        let failed = std::mem::take(&mut self.failed);
        failed.iter().for_each(|(name, n, _)| self.machine.failed(name, *n));
        failed.into_iter().next().map(|(name, _, why)| (name, why))
    }

    /// Looks at the windows of projects. Where what was told of them does not hold any more, all is to be seen anew.
    pub(super) fn watch_windows(&mut self, windows: Arc<BTreeMap<String, Vec<SyncWindow>>>, now: Timestamp) {
        if self.windows.is_outdated(&windows, now) {
            self.windows = Windows::new(windows, now);
            self.doubts_applications = true;
        }
    }

    /// When windows open or close.
    pub(super) fn windows_change_at(&self) -> Option<Timestamp> {
        self.windows.changes_at()
    }

    /// Whether it is the set of this UID that is rolled out.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        self.offer.as_ref().is_none_or(|offer| *offer.wanted.set == *uid)
    }

    /// Tells the machine what is wanted and asked for, where that is new. Gives what it follows.
    pub(super) fn wish(&mut self, offer: &Arc<Offer>, control: Control, now: Timestamp) -> Arc<Offer> {
        let offer = &self.phasing.amended(offer);
        let same = self.offer.as_ref().is_some_and(|known| Arc::ptr_eq(known, offer));
        if let Some(followed) = &self.followed
            && same
            && self.control == control
            && !self.machine.may_move_on()
        {
            return followed.clone();
        }
        if self.control != control {
            // People who ask for something may have written the head as well.
            self.doubts_head |= self.offer.is_some();
        }
        self.machine.wants(Wanted { control: control.clone(), ..offer.wanted.clone() }, now);
        let held_back = self.machine.following().filter(|_| self.machine.holds_back());
        let followed = match (&self.followed, held_back) {
            (Some(before), Some(wanted)) => Arc::new(before.amended(offer, wanted.clone())),
            _ => offer.clone(),
        };
        if self.followed.as_ref().is_some_and(|known| known.rules != followed.rules) {
            self.doubts_applications = true;
        }
        (self.offer, self.control) = (Some(offer.clone()), control);
        self.followed = Some(followed.clone());
        followed
    }

    /// Tells the machine what was seen.
    pub(super) fn learn(&mut self, news: Vec<News>, offer: &Offer) {
        for news in news {
            match news {
                News::Seen(sight) => self.see(&sight, offer),
                News::Gone { name, uid } => self.lose(&name, &uid),
            }
        }
    }

    pub(super) fn see(&mut self, sight: &Sight, offer: &Offer) {
        self.keep(sight);
        let live = self.live(sight, offer);
        self.machine.saw(live);
    }

    pub(super) fn lose(&mut self, name: &str, uid: &str) {
        if self.specs.get(name).is_some_and(|known| *known.uid == *uid) {
            self.specs.remove(name);
        }
        self.machine.gone(name, uid);
    }

    /// A consistent list showed these Applications and no others.
    pub(super) fn list(&mut self, version: u64, sights: &[Box<Sight>], offer: &Offer) {
        let lives = sights.iter().map(|sight| self.live(sight, offer)).collect();
        self.machine.listed(version, lives);
        let shown: BTreeSet<&str> = sights.iter().map(|sight| &*sight.name).collect();
        self.specs.retain(|name, _| shown.contains(&**name));
        sights.iter().for_each(|sight| self.keep(sight));
    }

    fn live(&mut self, sight: &Sight, offer: &Offer) -> Live {
        Live { closed: self.windows.closed(&sight.name, &sight.spec), ..sight.live(&offer.ignored) }
    }

    fn keep(&mut self, sight: &Sight) {
        let known = self.specs.get(&sight.name);
        if known.is_none_or(|known| known.uid != sight.uid || known.version <= sight.version) {
            let text = sight.spec.to_string().into_boxed_str();
            let spec = Spec { uid: sight.uid.clone(), version: sight.version, text };
            self.specs.insert(sight.name.clone(), spec);
        }
    }

    /// The live specification of an Application at one version; none if another version is known.
    pub(super) fn spec(&self, name: &str, version: u64) -> Option<Value> {
        let spec = self.specs.get(name).filter(|spec| spec.version == version)?;
        serde_json::from_str(&spec.text).ok()
    }
}

/// Whose source a revision belongs to: the first Application that asks for it.
pub(super) fn asked(offer: &Offer, key: &SourceKey) -> Option<Asked> {
    let template = offer.templates.values().find(|template| template.sources.contains(key))?;
    let spec: ApplicationSpec = serde_json::from_str(&template.spec).ok()?;
    let sources = normalize::sources(&spec);
    let source = sources.iter().find(|source| key_of(source) == *key)?;
    Some(Asked::new(template.project.clone(), source))
}
