//! DaemonSets: one pod on every node that accepts it.

use crate::Kind;
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::suffixed;
use crate::object::{deleting, generation, int, label, map, name, portion, put_count, text, uid};
use crate::ownership::{claim, hand_down, is_finished, pod_from};
use crate::pod;
use crate::replicaset::{BURST, total};
use crate::revision::{REVISION_HASH, Revisions};
use crate::schedule;
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

pub(crate) fn decide(set: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(set) {
        return decision;
    }
    let revisions = Revisions::sync(&mut decision, set, family);
    let pods = claim(&mut decision, set, family, Kind::Pod);
    hand_down(&mut decision, set, &pods);
    let mut nodes: Vec<&str> = family
        .of_kind(Kind::Node)
        .filter(|node| schedule::accepts(node, &set["spec"]["template"]["spec"]))
        .map(name)
        .collect();
    nodes.sort_unstable();
    nodes.truncate(settings.max_pods_per_owner);
    let spread = Spread::new(set, &revisions.update_hash, nodes, &pods, now);
    spread.place(&mut decision);
    if text(set, &["spec", "updateStrategy", "type"]) != "OnDelete" {
        spread.update(&mut decision);
    }
    spread.report(&mut decision);
    let mut live: HashSet<&str> = pods.iter().map(|pod| label(pod, REVISION_HASH)).collect();
    live.insert(&revisions.update_hash);
    revisions.trim(&mut decision, set, &live);
    decision
}

/// A DaemonSet with its pods by node.
struct Spread<'a> {
    set: &'a Value,
    hash: &'a str,
    nodes: BTreeMap<&'a str, OnNode<'a>>,
    strays: Vec<&'a Value>,
    min_ready: i64,
    now: Timestamp,
}

/// The unfinished pods of one node, oldest first.
#[derive(Default)]
struct OnNode<'a> {
    new: Vec<&'a Value>,
    old: Vec<&'a Value>,
    terminating: bool,
    finished: Vec<&'a Value>,
}

// === impl Spread ===

impl<'a> Spread<'a> {
    fn new(set: &'a Value, hash: &'a str, nodes: Vec<&'a str>, pods: &[&'a Value], now: Timestamp) -> Self {
        let mut by_node: BTreeMap<&str, OnNode> =
            nodes.into_iter().map(|node| (node, OnNode::default())).collect();
        let mut strays = Vec::new();
        for pod in pods.iter().copied() {
            let Some(place) = by_node.get_mut(text(pod, &["spec", "nodeName"])) else {
                strays.push(pod);
                continue;
            };
            if deleting(pod) {
                place.terminating = true;
            } else if is_finished(pod) {
                place.finished.push(pod);
            } else if label(pod, REVISION_HASH) == hash {
                place.new.push(pod);
            } else {
                place.old.push(pod);
            }
        }
        let min_ready = int(set, &["spec", "minReadySeconds"]).unwrap_or(0);
        Self { set, hash, nodes: by_node, strays, min_ready, now }
    }

    /// One pod on every node, none elsewhere.
    fn place(&self, decision: &mut Decision) {
        let mut made = 0;
        for (node, place) in &self.nodes {
            if place.is_empty() && made < BURST {
                self.create(decision, node);
                made += 1;
            }
            let doubles = place.new.iter().skip(1).chain(place.old.iter().skip(1));
            for pod in place.finished.iter().chain(doubles) {
                decision.delete(pod, Removal::Graceful);
            }
        }
        for pod in self.strays.iter().filter(|pod| !deleting(pod)) {
            decision.delete(pod, Removal::Graceful);
        }
    }

    fn create(&self, decision: &mut Decision, node: &str) {
        let pod_name = suffixed(name(self.set), &[uid(self.set), node, self.hash]);
        let labels = [(REVISION_HASH, self.hash)];
        let mut pod = pod_from(self.set, &self.set["spec"]["template"], &pod_name, &labels);
        if let Some(spec) = pod["spec"].as_object_mut() {
            spec.insert("nodeName".into(), node.into());
        }
        decision.create(pod);
    }

    /// Replaces outdated pods. One that is not available is replaced at once, since nothing is lost.
    fn update(&self, decision: &mut Decision) {
        let (surge, unavailable) = self.bounds();
        let down = self.nodes.values().filter(|place| !self.serves(place)).count();
        let mut may_stop = unavailable.saturating_sub(total(down));
        let doubled = self.nodes.values().filter(|p| !p.new.is_empty() && !p.old.is_empty()).count();
        let mut may_add = surge.saturating_sub(total(doubled));
        for (node, place) in &self.nodes {
            let Some(old) = place.old.first() else { continue };
            let replaced = place.new.first().is_some_and(|new| self.is_available(new));
            if replaced || (!self.is_available(old) && place.new.is_empty()) {
                decision.delete(old, Removal::Graceful);
            } else if place.new.is_empty() && surge > 0 {
                if may_add > 0 && !place.terminating {
                    self.create(decision, node);
                    may_add -= 1;
                }
            } else if surge == 0 && may_stop > 0 {
                decision.delete(old, Removal::Graceful);
                may_stop -= 1;
            }
        }
    }

    fn bounds(&self) -> (i64, i64) {
        let rolling = &self.set["spec"]["updateStrategy"]["rollingUpdate"];
        let wanted = total(self.nodes.len());
        let surge = portion(&rolling["maxSurge"], wanted, true).unwrap_or(0);
        let unavailable = portion(&rolling["maxUnavailable"], wanted, true).unwrap_or(1);
        if surge == 0 { (0, unavailable.max(1)) } else { (surge, unavailable) }
    }

    fn report(&self, decision: &mut Decision) {
        let nodes = || self.nodes.values();
        let ready = nodes().filter(|place| place.running().any(pod::is_ready)).count();
        let available = nodes().filter(|place| self.serves(place)).count();
        for pod in nodes().flat_map(OnNode::running) {
            if let Err(later) = pod::available(pod, self.min_ready, self.now) {
                decision.wake_by(later);
            }
        }
        let wanted = self.nodes.len();
        let mut status = map(self.set, &["status"]);
        let updated = nodes().filter(|place| !place.new.is_empty()).count();
        let placed = nodes().filter(|place| !place.is_empty()).count();
        status.insert("observedGeneration".into(), generation(self.set).into());
        status.insert("desiredNumberScheduled".into(), json!(wanted));
        status.insert("currentNumberScheduled".into(), json!(placed));
        status.insert("numberMisscheduled".into(), json!(self.strays.len()));
        status.insert("numberReady".into(), json!(ready));
        put_count(&mut status, "updatedNumberScheduled", total(updated));
        put_count(&mut status, "numberAvailable", total(available));
        put_count(&mut status, "numberUnavailable", total(wanted.saturating_sub(available)));
        decision.status(self.set, status);
    }

    fn serves(&self, place: &OnNode) -> bool {
        place.running().any(|pod| self.is_available(pod))
    }

    fn is_available(&self, pod: &Value) -> bool {
        pod::available(pod, self.min_ready, self.now).is_ok()
    }
}

// === impl OnNode ===

impl<'a> OnNode<'a> {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty() && self.finished.is_empty() && !self.terminating
    }

    fn running(&self) -> impl Iterator<Item = &'a Value> {
        self.new.iter().chain(&self.old).copied()
    }
}
