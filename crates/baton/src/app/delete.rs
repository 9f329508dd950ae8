//! `delete`: an Application, and what it deployed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_sync::deletion;
use clap::Args;
use serde_json::Value;

use super::applications::{Applications, Deletion, Policy};
use super::desk::Desk;
use super::follow::{self, Ended};
use super::operate::{duration, overdue};
use super::typed;
use crate::failure::Failure;
use crate::objects::{can_ask, confirmed};
use crate::place::Place;
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
    place: Place,
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
        let applications = Applications::at(&self.place).await?;
        let how = Deletion { cascade: self.cascade, policy: self.propagation_policy };
        let mut found = Vec::new();
        for name in &self.names {
            found.push(typed(&applications.get(name).await?)?);
        }
        if !self.yes {
            can_ask()?;
            if !confirmed(&self.question(&applications, &found).await)? {
                return Err(Failure::waiting("nothing was deleted"));
            }
        }
        for name in &self.names {
            applications.delete(name, how).await?;
        }
        for name in &self.names {
            self.follow(&applications, name).await?;
        }
        Ok(())
    }

    /// What becomes of the resources, one line for each Application.
    async fn question(&self, applications: &Applications, found: &[Application]) -> Vec<String> {
        let mut lines = Vec::with_capacity(found.len());
        for (name, application) in self.names.iter().zip(found) {
            let fate = match self.cascade {
                false => Fate::Stay(application.status.resources.len()),
                true => match tokio::time::timeout(PATIENCE, live(applications, name)).await {
                    Ok(Ok(live)) => Fate::judged(application, &live),
                    // The question must not depend on a cluster that is perhaps the reason for it.
                    _ => Fate::Unseen(application.status.resources.len()),
                },
            };
            lines.push(format!("{name}: {fate}"));
        }
        lines
    }

    async fn follow(&self, applications: &Applications, name: &str) -> Result<(), Failure> {
        if !self.wait {
            return print::out(&format!("application.argoproj.io/{name} deletion requested\n"));
        }
        match follow::until(applications, name, self.timeout, |_| false).await? {
            Ended::Gone | Ended::Held(_) => print::out(&format!("application.argoproj.io/{name} deleted\n")),
            Ended::TimedOut(last) => Err(overdue(name, last.map(|last| last.application).as_ref())),
            Ended::Interrupted => {
                Err(Failure::failed(format!("interrupted; the deletion of {name} goes on")))
            }
        }
    }
}

/// The Application's objects as they are.
async fn live(applications: &Applications, name: &str) -> Result<Vec<Arc<Value>>, Failure> {
    match applications {
        Applications::Cluster(there) => Desk::open(there, name).await?.live().await,
        Applications::Server(there) => {
            let there = there.managed(name).await?.into_iter().filter(|one| !one.live.is_null());
            Ok(there.map(|one| one.live).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
