//! Following an Application: what changes is said as it changes, until something holds.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use baton_api::Application;
use baton_api::names::application::{REFRESH, REFRESH_TIMESTAMP};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::applications::Applications;
use super::{typed, view};
use crate::failure::Failure;
use crate::session::Interruption;
use crate::shutdown::Shutdown;
use crate::terminal;

/// How following ended.
pub(super) enum Ended {
    /// What was waited for holds.
    Held(Box<Followed>),
    /// The Application is gone.
    Gone,
    /// Time is up.
    TimedOut(Option<Box<Followed>>),
    /// The person had enough.
    Interrupted,
}

/// An Application as it was last seen.
pub(super) struct Followed {
    pub(super) object: Value,
    pub(super) application: Application,
}

/// Follows an Application until `holds`. Progress goes to standard error where a person reads it.
///
/// # Errors
/// The API refuses the watch for good, as without the right to it.
pub(super) async fn until(
    applications: &Applications,
    name: &str,
    timeout: Option<Duration>,
    mut holds: impl FnMut(&Application) -> bool,
) -> Result<Ended, Failure> {
    let mut seen = applications.watch(name);
    let mut shutdown = Shutdown::listen();
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut progress = Progress::new();
    let mut last: Option<Box<Followed>> = None;
    loop {
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = seen.next() => event,
            () = late => return Ok(Ended::TimedOut(last)),
            () = shutdown.asked() => return Ok(Ended::Interrupted),
        };
        match event {
            Some(Ok(Some(object))) => {
                let application = typed(&object)?;
                progress.tell(&application);
                let done = holds(&application);
                let followed = Box::new(Followed { object, application });
                if done {
                    return Ok(Ended::Held(followed));
                }
                last = Some(followed);
            }
            Some(Ok(None)) => return Ok(Ended::Gone),
            Some(Err(Interruption::Refused(failure))) => return Err(failure),
            Some(Err(Interruption::Lost(why))) => {
                tracing::info!(why, "the watch of the Application begins anew")
            }
            None => return Err(Failure::api("the watch of the Application ended")),
        }
    }
}

/// Asks for a comparison and waits until it was made and written down.
///
/// # Errors
/// There is no such Application, or the person had enough.
pub(super) async fn refreshed(applications: &Applications, name: &str, kind: &str) -> Result<Value, Failure> {
    let cluster = match applications {
        Applications::Server(there) => return there.refreshed(name, kind).await,
        Applications::Cluster(there) => there,
    };
    let nonce = jiff::Timestamp::now().to_string();
    cluster.annotate(name, json!({REFRESH: kind, REFRESH_TIMESTAMP: nonce})).await?;
    let gone = |application: &Application| {
        application.metadata.annotations.as_ref().is_none_or(|annotations| !annotations.contains_key(REFRESH))
    };
    match until(applications, name, Some(Duration::from_secs(120)), gone).await? {
        Ended::Held(followed) => Ok(followed.object),
        Ended::Gone => Err(Failure::failed(format!("application {name} was deleted meanwhile"))),
        Ended::TimedOut(_) => Err(Failure::failed(
            "the comparison was asked for, and no controller made it within 2 minutes: does one run?",
        )),
        Ended::Interrupted => Err(Failure::failed("interrupted; the comparison is still asked for")),
    }
}

/// One line for each resource that changes.
struct Progress {
    shown: bool,
    rows: BTreeMap<String, [String; 4]>,
    message: String,
}

impl Progress {
    fn new() -> Progress {
        Progress { shown: std::io::stderr().is_terminal(), rows: BTreeMap::new(), message: String::new() }
    }

    fn tell(&mut self, application: &Application) {
        if !self.shown {
            return;
        }
        let now = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        for (key, row) in rows(application) {
            if self.rows.get(&key) != Some(&row) {
                let [sync, health, hook, message] = &row;
                let words: Vec<&str> = [sync, health, hook]
                    .into_iter()
                    .map(String::as_str)
                    .filter(|word| !word.is_empty())
                    .collect();
                let words = words.join(", ");
                terminal::remark(format!("{now}  {key:<48} {words:<24} {message}").trim_end());
                self.rows.insert(key, row);
            }
        }
        let message = message(application);
        if message != self.message {
            if !message.is_empty() {
                terminal::remark(&format!("{now}  {message}"));
            }
            self.message = message;
        }
    }
}

/// What is to be told of each resource: sync, health, hook, message.
fn rows(application: &Application) -> BTreeMap<String, [String; 4]> {
    let mut rows: BTreeMap<String, [String; 4]> = BTreeMap::new();
    for resource in &application.status.resources {
        let (health, message) = view::health(resource.health.as_ref());
        let mark = view::marks(resource);
        rows.insert(
            view::resource_name(resource),
            [resource.status.as_str().to_owned(), health, mark, message.replace('\n', " ")],
        );
    }
    // What a sync said before is no part of a deletion.
    let going = application.metadata.deletion_timestamp.is_some();
    let state = application.status.operation_state.as_ref().filter(|_| !going);
    for result in state.and_then(|state| state.sync_result.as_ref()).iter().flat_map(|all| &all.resources) {
        let place =
            if result.namespace.is_empty() { String::new() } else { format!("{}/", result.namespace) };
        let key = format!("{}/{} {place}{}", result.group, result.kind, result.name);
        let row = rows.entry(key.trim_start_matches('/').to_owned()).or_default();
        // What was applied is told by its message; a word is needed where it is a hook or was not.
        row[2] = match (result.hook_type.as_str(), view::outcome(result)) {
            ("", "Synced") => std::mem::take(&mut row[2]),
            ("", outcome) => outcome.to_owned(),
            (hook, outcome) => format!("{hook} hook {outcome}"),
        };
        row[3] = result.message.replace('\n', " ");
    }
    rows
}

fn message(application: &Application) -> String {
    if application.metadata.deletion_timestamp.is_some() {
        let of_deletion = baton_sync::conditions::OF_DELETION;
        let told = application.status.conditions.iter();
        let told = told.filter(|condition| of_deletion.contains(&condition.kind.as_str()));
        return told.map(|condition| condition.message.replace('\n', " ")).collect::<Vec<_>>().join("; ");
    }
    let state = application.status.operation_state.as_ref();
    let operation = state.map_or_else(String::new, |state| {
        let message = state.message.replace('\n', " ");
        if message.is_empty() { message } else { format!("{}: {message}", state.phase.as_str()) }
    });
    let approval = match view::waiting(application) {
        None => String::new(),
        Some(_) => format!(
            " (approve with: baton app confirm-deletion {})",
            application.metadata.name.as_deref().unwrap_or_default()
        ),
    };
    operation + &approval
}
