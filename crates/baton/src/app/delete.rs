//! `delete`: an Application, and what it deployed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::names::finalizer::{RESOURCES, RESOURCES_BACKGROUND, RESOURCES_FOREGROUND};
use baton_sync::deletion;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::desk::Desk;
use super::follow::{self, Ended};
use super::operate::{duration, overdue};
use super::typed;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::objects::{Objects, can_ask, confirmed, text};
use crate::print;

/// How long a cluster may take to tell what would go.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(
    after_help = "What needs approval (Delete=confirm, Prune=confirm) is not deleted before it is approved:
the command then waits, and `baton app confirm-deletion NAME` lets it go on.

Examples:
  baton app delete web
  baton app delete web --cascade=false        leave what it deployed
  baton app delete web api --yes --wait=false"
)]
pub(crate) struct Delete {
    /// Their names.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    connection: Connection,
    /// Delete what it deployed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    cascade: bool,
    /// Whether dependants of deleted objects go first or afterwards.
    #[arg(long, value_enum, value_name = "POLICY")]
    propagation_policy: Option<Policy>,
    /// Wait until it is gone.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// Wait no longer than this.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    Foreground,
    Background,
}

/// What becomes of an Application's resources.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// All of them stay.
    Stay(usize),
    /// These go and these are kept.
    Known { go: usize, kept: usize },
    /// Of so many nobody could see which are kept.
    Unseen(usize),
}

impl Fate {
    fn judged(application: &Application, live: &[Arc<Value>]) -> Fate {
        let kept = live.iter().filter(|live| deletion::kept(application, live).is_some()).count();
        Fate::Known { go: live.len() - kept, kept }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: &usize| if *count == 1 { "" } else { "s" };
        match self {
            Fate::Stay(count) => write!(f, "{count} resource{} will stay", plural(count)),
            Fate::Known { go, kept: 0 } => write!(f, "{go} resource{} will go with it", plural(go)),
            Fate::Known { go, kept } => write!(
                f,
                "{go} resource{} will go with it, {kept} will be kept (Delete=false and the like)",
                plural(go)
            ),
            Fate::Unseen(count) => write!(
                f,
                "up to {count} resource{} will go with it; its cluster could not be asked which are kept",
                plural(count)
            ),
        }
    }
}

impl Delete {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if !self.cascade && self.propagation_policy.is_some() {
            return Err(Failure::usage(
                "--propagation-policy says how to cascade, and --cascade=false says not to",
            ));
        }
        let applications = self.connection.applications().await?;
        let mut found = Vec::new();
        for name in &self.names {
            found.push(typed(&applications.get(name).await?)?);
        }
        if !self.yes {
            can_ask()?;
            if !confirmed(&self.question(&found).await)? {
                return Err(Failure::waiting("nothing was deleted"));
            }
        }
        for name in &self.names {
            self.request(&applications, name).await?;
        }
        for name in &self.names {
            self.follow(name).await?;
        }
        Ok(())
    }

    /// What becomes of the resources, one line for each Application.
    async fn question(&self, found: &[Application]) -> Vec<String> {
        let mut lines = Vec::with_capacity(found.len());
        for (name, application) in self.names.iter().zip(found) {
            let fate = match self.cascade {
                false => Fate::Stay(application.status.resources.len()),
                true => match tokio::time::timeout(PATIENCE, self.live(name)).await {
                    Ok(Ok(live)) => Fate::judged(application, &live),
                    // The question must not depend on a cluster that is perhaps the reason for it.
                    _ => Fate::Unseen(application.status.resources.len()),
                },
            };
            lines.push(format!("{name}: {fate}"));
        }
        lines
    }

    async fn live(&self, name: &str) -> Result<Vec<Arc<Value>>, Failure> {
        Desk::open(&self.connection, name).await?.live().await
    }

    /// Sets the finalizers that say what becomes of the resources, and deletes the object.
    async fn request(&self, applications: &Objects, name: &str) -> Result<(), Failure> {
        for _ in 0..10 {
            let object = applications.get(name).await?;
            let uid = text(&object, "/metadata/uid");
            if let Some(finalizers) = self.finalizers(&object) {
                let version = text(&object, "/metadata/resourceVersion");
                let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
                if applications.merge(name, &patch).await?.is_none() {
                    continue;
                }
            }
            return applications.delete(name, "Background", &uid).await;
        }
        Err(Failure::api(format!("{name} changed each time it was to be written: try again")))
    }

    /// The finalizers the object must have, where it does not have them.
    fn finalizers(&self, object: &Value) -> Option<Vec<String>> {
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            return None;
        }
        let present: Vec<String> = object
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
            .collect();
        let cascades = |finalizer: &String| {
            [RESOURCES, RESOURCES_FOREGROUND, RESOURCES_BACKGROUND].contains(&finalizer.as_str())
        };
        let wanted = match (self.cascade, self.propagation_policy) {
            (false, _) => None,
            (true, None) => match present.iter().find(|finalizer| cascades(finalizer)) {
                Some(_) => return None,
                None => Some(RESOURCES),
            },
            (true, Some(Policy::Foreground)) => Some(RESOURCES_FOREGROUND),
            (true, Some(Policy::Background)) => Some(RESOURCES_BACKGROUND),
        };
        let mut after: Vec<String> =
            present.iter().filter(|finalizer| !cascades(finalizer)).cloned().collect();
        after.extend(wanted.map(str::to_owned));
        (after != present).then_some(after)
    }

    async fn follow(&self, name: &str) -> Result<(), Failure> {
        if !self.wait {
            return print::out(&format!("application.argoproj.io/{name} deletion requested\n"));
        }
        match follow::until(&self.connection, name, self.timeout, |_| false).await? {
            Ended::Gone | Ended::Held(_) => print::out(&format!("application.argoproj.io/{name} deleted\n")),
            Ended::TimedOut(last) => Err(overdue(name, last.map(|last| last.application).as_ref())),
            Ended::Interrupted => {
                Err(Failure::failed(format!("interrupted; the deletion of {name} goes on")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_does_not_count_as_going() {
        let object = |kind: &str, name: &str, annotations: Value| {
            Arc::new(json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"name": name, "namespace": "shop", "annotations": annotations}}))
        };
        let mut live = vec![
            object("ConfigMap", "plain", json!({})),
            object("ConfigMap", "guarded", json!({"argocd.argoproj.io/sync-options": "Delete=confirm"})),
        ];
        let web: Application =
            serde_json::from_value(json!({"metadata": {"name": "web"}})).expect("an Application");
        assert_eq!(Fate::judged(&web, &live).to_string(), "2 resources will go with it");
        live.push(object("ConfigMap", "kept", json!({"argocd.argoproj.io/sync-options": "Delete=false"})));
        live.push(object("ConfigMap", "charted", json!({"helm.sh/resource-policy": "keep"})));
        let told = Fate::judged(&web, &live).to_string();
        assert_eq!(told, "2 resources will go with it, 2 will be kept (Delete=false and the like)");
        assert_eq!(Fate::Stay(1).to_string(), "1 resource will stay");
    }
}
