//! What a cluster's own controllers, scheduler and kubelets would do next, as pure decisions.
//!
//! [`decide`] takes one stored object, the objects it depends on, the settings and the time, and answers
//! with the writes to make now and the moment to look again. It reads no clock, keeps no state and does no
//! I/O; a shell watches the kinds of [`Kind::WATCHED`], calls it after every change, and carries out what it
//! says. A settled object gives no action and no wake-up, so a quiet cluster costs nothing.
//!
//! # Annotations
//!
//! They are read from the object itself. On a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job they
//! reach its pods (through [`INHERITED`], which the simulator keeps up to date on the children), and so
//! does an annotation on the pod template. The nearest one wins: pod, then template, then owner. A change
//! takes effect at once.
//!
//! | annotation | on | effect |
//! |---|---|---|
//! | `sim.baton.dev/delay: 30s` | all | becomes ready (or completes, or binds) that long after its creation instead of the default delay; Go duration |
//! | `sim.baton.dev/stuck: "true"` | all | never gets ready; what is already ready stays so. Removing it lets it go on |
//! | `sim.baton.dev/fail: <reason>` | pods and their owners | fails instead of getting ready, and a ready pod fails at once. See below |
//! | | PersistentVolumeClaim | phase `Lost` |
//! | | Node | condition `Ready` is `False` with this reason |
//! | `sim.baton.dev/deletion-delay: 10s` | pods and their owners | a deleted pod takes that long to go |
//!
//! Values of `fail` on pods: `ImagePullBackOff`, `ErrImagePull`, `InvalidImageName`,
//! `CreateContainerConfigError` and `CreateContainerError` keep the containers waiting with that reason;
//! `Unschedulable` keeps a pod off every node; `NotReady` runs it without ever being ready; `OOMKilled` and
//! `CrashLoopBackOff` (and any other text, which becomes the message) crash it over and over. A pod that
//! runs to completion (`restartPolicy: Never`) ends in phase `Failed` instead of crashing again, and its
//! Job fails when its `backoffLimit` is used up. `"false"`, `"no"`, `"0"` and the empty string mean unset;
//! a delay that cannot be read is ignored.
//!
//! Delays count from the times the API records, which are whole seconds.
//!
//! # Driving it
//!
//! Keep a set of queued keys and a set of timers, one entry a key each. For every change of a kind in
//! [`Kind::WATCHED`] (deletions too, with the last state) queue what [`affected_by`] names; at the start
//! queue every object. To work on a key: read the object; if it is gone, drop its timer; otherwise look up
//! what [`relatives`] names, call [`decide`], replace the key's timer by `wake_at`, and carry out the
//! actions in order. Further rules:
//!
//! - The lookups must see at least what caused the call. A stale view costs a repeated write, not a wrong
//!   one, except that the bounds of a rolling update hold only for fresh reads.
//! - `Patch` and `Delete` carry a uid precondition; `Status` also the resourceVersion, unless an earlier
//!   action of the same decision wrote the same object, whose new version it then takes.
//! - "Already exists", "not found" and "conflict" are answers, not errors. After any refused action queue
//!   the key again with a growing pause: the object in the way may belong to another owner that is going.
//! - A write that changes nothing must raise no event, or an API that drops a field would make a loop.

mod behaviour;
mod condition;
mod daemonset;
mod decision;
mod deployment;
mod disruption;
mod family;
mod job;
mod kind;
mod log;
mod namespace;
mod naming;
mod network;
mod node;
mod object;
mod ownership;
mod pod;
mod replicaset;
mod revision;
mod schedule;
mod selector;
mod settings;
mod statefulset;
mod volume;

pub use behaviour::{INHERITED, PREFIX};
pub use decision::{Action, Decision, Removal, Target};
pub use family::{Affected, Family, Lookup, affected_by, relatives};
pub use kind::Kind;
pub use log::{Log, LogLine, NoLog, containers, log};
pub use settings::Settings;

use jiff::Timestamp;
use serde_json::Value;

/// What should happen to `object` (and, for owners, to its children) at time `now`.
///
/// # Guarantees
/// - Pure: equal arguments give equal answers. No panic on any JSON.
/// - No action and no `wake_at` when nothing is left to do; a `wake_at` is always after `now`.
/// - Repeating a decision on the same view asks for the same names, so a repeated `Create` meets
///   "already exists" and never makes a second object.
///
/// # Assumptions
/// `family` holds what [`relatives`] names for this object, read together with it or later. An object of
/// a kind the simulator does not act on (CronJob, HorizontalPodAutoscaler, custom kinds) gives the empty
/// decision.
pub fn decide(object: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let Some(kind) = Kind::of(object) else { return Decision::default() };
    let mut decision = match kind {
        Kind::Deployment => deployment::decide(object, family, now),
        Kind::ReplicaSet => replicaset::decide(object, family, settings, now),
        Kind::StatefulSet => statefulset::decide(object, family, settings, now),
        Kind::DaemonSet => daemonset::decide(object, family, settings, now),
        Kind::Job => job::decide(object, family, settings, now),
        Kind::Pod => pod::decide(object, family, settings, now),
        Kind::PersistentVolumeClaim => volume::decide_claim(object, settings, now),
        Kind::PersistentVolume => volume::decide_volume(object, family),
        Kind::Service => network::decide_service(object, settings, now),
        Kind::Ingress => network::decide_ingress(object, settings, now),
        Kind::PodDisruptionBudget => disruption::decide(object, family, now),
        Kind::Namespace => namespace::decide(object, family, settings),
        Kind::Node => node::decide(object, settings, now),
        Kind::ControllerRevision | Kind::ServiceAccount | Kind::ConfigMap => Decision::default(),
    };
    decision.wake_at = decision.wake_at.filter(|at| *at > now && *at < Timestamp::MAX);
    decision
}
