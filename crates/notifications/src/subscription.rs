//! Who is told: subscriptions by annotation, by project, and by configuration.
//!
//! # Forms of annotations
//! - `notifications.argoproj.io/subscribe.<trigger>.<service>: a;b`
//! - `notifications.argoproj.io/subscribe.<service>: a;b`, for the default triggers of the service
//! - `notifications.argoproj.io/subscriptions`, a YAML list of `trigger`, and `destinations` with `service` and
//!   `recipients`
//! - of old: `recipients.argocd-notifications.argoproj.io` and `<trigger>.recipients.…`, with `service:recipient` and
//!   commas

use std::collections::{BTreeMap, BTreeSet};

use baton_grammar::yaml;
use serde_json::Value as Json;

use crate::config::Config;
use crate::subject::{Subject, annotations};

const SUBSCRIBE: &str = "notifications.argoproj.io/subscribe.";
const SUBSCRIPTIONS: &str = "notifications.argoproj.io/subscriptions";
/// What the engine under Argo CD calls the same.
const SUBSCRIBE_YAML: &str = "notifications.argoproj.io/subscribe_yaml";
const OF_OLD: &str = "recipients.argocd-notifications.argoproj.io";

/// Most recipients of one trigger for one object. More of them are somebody's mistake.
const MOST_RECIPIENTS: usize = 100;

/// Most pairs of trigger and recipient for one object: each has a key in its annotation.
const MOST_PAIRS: usize = 200;

/// Longest name of a trigger, service or recipient, in bytes.
const LONGEST: usize = 256;

/// A service and somebody it reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// Name of the service.
    pub service: String,
    /// A channel, an address; empty where the service needs none.
    pub recipient: String,
}

/// Who is told of what about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscribed {
    /// The destinations of each trigger.
    pub destinations: BTreeMap<String, BTreeSet<Destination>>,
    /// What could not be read or is too much.
    pub complaints: Vec<String>,
}

// === impl Destination ===

impl Destination {
    /// Reads `service:recipient`; the recipient may hold colons.
    pub fn parse(text: &str) -> Destination {
        let (service, recipient) = text.split_once(':').unwrap_or((text, ""));
        Destination { service: service.trim().to_owned(), recipient: recipient.trim().to_owned() }
    }
}

/// Who is told of what about an object: by its own annotations, by its project's, and by the configuration.
pub fn subscribed(subject: &Subject<'_>, config: &Config) -> Subscribed {
    let mut all = Collecting { config, author: Author::Owner, subscribed: Subscribed::default() };
    all.annotated(subject.object, "");
    all.author = Author::Operator;
    if let Some(project) = subject.project {
        all.annotated(project, "its project's ");
    }
    for subscription in &config.subscriptions {
        if !subscription.selector.matches_object(subject.object) {
            continue;
        }
        for destination in &subscription.recipients {
            match subscription.triggers.as_slice() {
                [] => all.add_defaults(destination),
                triggers => triggers.iter().for_each(|trigger| all.add(trigger, destination)),
            }
        }
    }
    all.subscribed
}

struct Collecting<'c> {
    config: &'c Config,
    author: Author,
    subscribed: Subscribed,
}

/// Who wrote a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// Whoever may change the object: held to what the services allow.
    Owner,
    /// Whoever may change projects and the configuration.
    Operator,
}

// === impl Collecting ===

impl Collecting<'_> {
    fn annotated(&mut self, object: &Json, whose: &str) {
        for (key, value) in annotations(object) {
            if let Some(rest) = key.strip_prefix(SUBSCRIBE) {
                self.subscribe(rest, value);
            } else if key == SUBSCRIPTIONS || key == SUBSCRIBE_YAML {
                if let Err(why) = self.listed(value) {
                    self.subscribed.complaints.push(format!("{whose}annotation {key}: {why}"));
                }
            } else if let Some(trigger) = key.strip_suffix(OF_OLD) {
                self.of_old(trigger.trim_end_matches('.'), value);
            }
        }
    }

    /// `<trigger>.<service>` or `<service>`.
    fn subscribe(&mut self, names: &str, value: &str) {
        let mut names = names.split('.');
        let (first, second) = (names.next().unwrap_or_default(), names.next());
        let recipients: Vec<&str> = match value {
            "" => vec![""],
            value => value.split(';').map(str::trim).filter(|recipient| !recipient.is_empty()).collect(),
        };
        for recipient in recipients {
            let to =
                |service: &str| Destination { service: service.to_owned(), recipient: recipient.to_owned() };
            match second {
                Some(service) => self.add(first, &to(service)),
                None => self.add_defaults(&to(first)),
            }
        }
    }

    fn listed(&mut self, text: &str) -> Result<(), String> {
        let value = yaml::first(text).map_err(|error| error.to_string())?;
        let items = value.as_array().ok_or("a list of subscriptions is wanted")?;
        for item in items {
            let triggers = names(item.get("trigger").or_else(|| item.get("triggers")));
            for destination in item.get("destinations").and_then(Json::as_array).into_iter().flatten() {
                let service = destination.get("service").and_then(Json::as_str).unwrap_or_default();
                let mut recipients = names(destination.get("recipients"));
                if recipients.is_empty() {
                    recipients.push(String::new());
                }
                for recipient in recipients {
                    let destination = Destination { service: service.to_owned(), recipient };
                    match triggers.as_slice() {
                        [] => self.add_defaults(&destination),
                        triggers => triggers.iter().for_each(|trigger| self.add(trigger, &destination)),
                    }
                }
            }
        }
        Ok(())
    }

    fn of_old(&mut self, trigger: &str, value: &str) {
        for text in value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let destination = Destination::parse(text);
            if trigger.is_empty() { self.add_defaults(&destination) } else { self.add(trigger, &destination) }
        }
    }

    fn add_defaults(&mut self, destination: &Destination) {
        let config = self.config;
        let of_service = config.service_default_triggers.get(&destination.service);
        of_service
            .unwrap_or(&config.default_triggers)
            .iter()
            .for_each(|trigger| self.add(trigger, destination));
    }

    fn add(&mut self, trigger: &str, destination: &Destination) {
        let names = [trigger, &destination.service, &destination.recipient];
        if names.iter().any(|name| name.len() > LONGEST) {
            return self.complain(format!("a name in a subscription is longer than {LONGEST} bytes"));
        }
        let service = self.config.services.get(&destination.service);
        if self.author == Author::Owner
            && service.is_some_and(|service| !service.allowed.contains(&destination.recipient))
        {
            return self.complain(format!(
                "{:?} is not among the allowedRecipients of {}, so it is not told",
                destination.recipient, destination.service
            ));
        }
        let pairs: usize = self.subscribed.destinations.values().map(BTreeSet::len).sum();
        let known = self.subscribed.destinations.entry(trigger.to_owned()).or_default();
        if known.contains(destination) {
            return;
        }
        if known.len() >= MOST_RECIPIENTS || pairs >= MOST_PAIRS {
            return self.complain(format!(
                "{trigger} has more than {MOST_RECIPIENTS} recipients, or all triggers together more than \
                 {MOST_PAIRS}; the others are not told"
            ));
        }
        known.insert(destination.clone());
    }

    fn complain(&mut self, why: String) {
        if !self.subscribed.complaints.contains(&why) {
            self.subscribed.complaints.push(why);
        }
    }
}

fn names(value: Option<&Json>) -> Vec<String> {
    match value {
        Some(Json::String(name)) => vec![name.clone()],
        Some(Json::Array(names)) => {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}
