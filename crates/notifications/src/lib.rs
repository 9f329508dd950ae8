//! Notifications: who is told what about Applications and ApplicationSets, and that it is told once.
//!
//! The configuration is Argo CD's: triggers, templates, subscriptions and services of the ConfigMap
//! `argocd-notifications-cm`, subscriptions by annotation, and what has been told in the annotation
//! `notified.notifications.argoproj.io`. [`Config::read`] reads it, [`decide`] says what is to be told, and [`pass`]
//! stores, sends and notes it.
//!
//! # The outbox
//! A message is stored before it is sent, ready as it goes out, and stays until it is known to have arrived. It is kept
//! in a Secret of its own beside the controller, one for each object that has something to be sent, and not in an
//! annotation of the object: an object that is deleted would take along what is still to be said about it, above all
//! that its deletion waits for approval; whoever owns the object (an ApplicationSet, a parent Application) would remove
//! the annotation; and templates may write secrets into messages. What has *been* told stays in the annotation, where
//! Argo CD looks for it.
//!
//! # Guarantees
//! - *Nothing is lost*: from the moment a pass has seen a condition met, has had room in the outbox and has stored it,
//!   the message is sent until a receiver has taken it, through crashes and changes of leader. A condition that comes
//!   and goes between two passes, or while nobody watches, is not seen. When the outbox of an object is full, new
//!   messages wait outside, and are queued as soon as there is room if their condition still holds.
//! - *Given up* is only what has failed for 72 hours, or as often as the service's `retryMax` says, and it is reported.
//!   Conditions with `untilDelivered` (approvals, in the catalog) are tried for as long as they hold, have a quarter of
//!   the outbox to themselves, are sent first, and are sent as a plain text where their template is broken: they are
//!   never dropped while somebody is waited for.
//! - *At least once, and once but for one window*: an arrival is stored before anything else is done. Only when the
//!   process dies between the receiver's answer and that write, or when an answer is lost on the way, is a message sent
//!   again: with the same id, the same bytes, and the same `Idempotency-Key` (HTTP) or `Message-ID` and `Date`
//!   (e-mail), so that a receiver can drop it. If the write fails and the process lives, it is not sent again.
//! - *Exactly once* where the service can be asked: in Slack, if the recipient is a channel's id and the token may read
//!   its history, a message that may have arrived is looked for among the last hundred before it is sent again.
//! - *Once per occasion*: with `oncePer`, once for each value of it; without, once until the condition has not held.
//!   Keys of conditions that hold are never forgotten; of the others the newest hundred are kept.
//!
//! # Assumptions
//! One process at a time makes passes over an object, as a leader election gives it; [`Keeper::store_outbox`] is a
//! compare-and-swap, so a second one that sends what the first has stored is noticed when it stores, at the latest.
//!
//! # Differences from Argo CD
//! - One wrong key of the configuration does not take the others down.
//! - A delivery that failed is tried again, also with `oncePer`.
//! - Recipients may hold colons. Keys of conditions that hold are kept beyond a hundred.
//! - `appset`, conditions about ApplicationSets, and `untilDelivered`.
//! - `allowedRecipients` of a service: globs of whom annotations of Applications and ApplicationSets may name.
//! - Not there: services other than webhook, Slack, e-mail and Teams; threads in Slack; `slackUserByEmail` and its
//!   like; `repo.GetCommitMetadata` and `repo.GetAppDetails`, which read repositories; configurations in the namespaces
//!   of Applications (self-service).

pub mod catalog;
mod config;
mod decide;
pub mod expression;
mod message;
mod notified;
mod outbox;
mod pass;
mod render;
mod service;
mod stored;
mod subject;
mod subscription;
mod variables;

pub use config::{
    AllowedRecipients, CONFIG_MAP, Card, Condition, Config, DefaultSubscription, EmailConfig, Finding,
    MessageTemplate, Patience, SECRET, Security, ServiceConfig, ServiceKind, Severity, SlackConfig,
    TeamsConfig, WebhookConfig,
};
pub use decide::{Decision, State, decide, settle};
pub use message::{Message, Part};
pub use notified::{DedupKey, Notified};
pub use outbox::{DeliveryId, Entry, Outbox, Progress, Unreadable, Wait};
pub use pass::{Attempt, Keeper, Ledger, NotStored, Passed, pass};
pub use service::{Carrier, Doubt, Failure, MOST_READ, Post, TIMEOUT};
pub use stored::{OUTBOX_LABEL, OUTBOX_TYPE, outbox_name, outbox_secret, read_outbox_secret};
pub use subject::{About, Kind, Subject};
pub use subscription::{Destination, Subscribed, subscribed};
