//! `manifests` and `diff`: what git describes, and how the cluster differs from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::SyncCode;
use baton_api::object::{Object, ResourceKey};
use baton_clusters::PredictError;
use baton_diff::{CompareOptions, Quick, Rules, SystemRules};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::applications::{Applications, AtServer};
use super::desk::Desk;
use super::{typed, view};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;
use crate::repositories::MappedRepositories;
use crate::terminal;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app manifests web
  baton app manifests web --revision v1.4.0
  baton app manifests web --source live")]
pub(crate) struct Manifests {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Of git, or of the cluster.
    #[arg(long, value_enum, default_value_t = From::Git)]
    source: From,
    /// At this revision instead of the one the Application names; once for each source, in their order.
    #[arg(long = "revision", value_name = "REVISION")]
    revisions: Vec<String>,
    #[command(flatten)]
    repositories: MappedRepositories,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    Git,
    Live,
}

impl Manifests {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let there = match Applications::at(&self.place).await? {
            Applications::Cluster(there) => there,
            Applications::Server(there) => {
                wanted_now(&self.revisions, &self.repositories)?;
                let objects = match self.source {
                    From::Git => there.manifests(&self.name).await?,
                    From::Live => {
                        let all = there.managed(&self.name).await?;
                        all.into_iter()
                            .map(|one| one.live.as_ref().clone())
                            .filter(|live| !live.is_null())
                            .collect()
                    }
                };
                return print::out(&print::yaml(&objects)?);
            }
        };
        let desk = Desk::open(&there, &self.name).await?;
        let objects: Vec<Value> = match self.source {
            From::Git => {
                let rendered = desk.rendered(&self.repositories, &self.revisions).await?;
                let targets = desk.targets(&rendered);
                let all = [targets.resources, targets.hooks, targets.pre_delete, targets.post_delete];
                all.into_iter().flatten().map(|object| object.as_ref().clone()).collect()
            }
            From::Live => {
                let masked = |object: &Arc<Value>| {
                    let mut shown = baton_diff::masked(object, object, &desk.rules).1;
                    if let Some(metadata) = shown["metadata"].as_object_mut() {
                        metadata.remove("managedFields");
                    }
                    shown
                };
                desk.live().await?.iter().map(masked).collect()
            }
        };
        print::out(&print::yaml(&objects)?)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code 4 says that there is a difference, 0 that there is none.

Examples:
  baton app diff web
  baton app diff web --revision feature-branch")]
pub(crate) struct Diff {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    /// With this revision instead of the one the Application names; once for each source, in their order.
    #[arg(long = "revision", value_name = "REVISION")]
    revisions: Vec<String>,
    #[command(flatten)]
    repositories: MappedRepositories,
}

impl Diff {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let differing = match &applications {
            Applications::Cluster(there) => self.in_cluster(&Desk::open(there, &self.name).await?).await?,
            Applications::Server(there) => {
                wanted_now(&self.revisions, &self.repositories)?;
                self.at_server(&typed(&applications.get(&self.name).await?)?, there).await?
            }
        };
        match differing {
            0 => {
                terminal::remark("No difference.");
                Ok(())
            }
            1 => Err(Failure::finding("1 resource differs")),
            count => Err(Failure::finding(format!("{count} resources differ"))),
        }
    }

    /// How many differ, by a comparison of our own.
    async fn in_cluster(&self, desk: &Desk) -> Result<usize, Failure> {
        let rendered = desk.rendered(&self.repositories, &self.revisions).await?;
        let targets = desk.targets(&rendered);
        let wanted: BTreeMap<ResourceKey, &Arc<Value>> =
            targets.resources.iter().map(|target| (target.key(), target)).collect();
        let mut differing = 0;
        for (key, target) in &wanted {
            let live = desk.fetch(target.api_version(), key).await?;
            differing += self.tell(&changed(desk, target, live.as_deref()).await?, key)?;
        }
        for object in desk.live().await?.iter().filter(|object| object.owners().is_empty()) {
            if !wanted.contains_key(&object.key()) && !baton_sync::hooks::is_hook(object) {
                differing += self.tell(&Some((object.as_ref().clone(), Value::Null)), &object.key())?;
            }
        }
        Ok(differing)
    }

    /// How many differ by the controller's word. What differs in them is told by what a server shows, so values that the
    /// API would write otherwise may be told too.
    async fn at_server(&self, application: &Application, there: &AtServer) -> Result<usize, Failure> {
        let rules = Rules::compile(&application.spec.ignore_differences, &SystemRules::default())
            .map_err(|error| Failure::failed(error.to_string()))?;
        let rows = &application.status.resources;
        let synced = |key: &ResourceKey| {
            rows.iter().any(|row| view::key(row) == *key && row.status == SyncCode::Synced)
        };
        let mut differing = 0;
        for one in there.managed(&self.name).await? {
            if one.hook || synced(&one.key) {
                continue;
            }
            let live = one.live.as_ref().clone();
            let difference = match (one.target.is_null(), live.is_null()) {
                (true, true) => continue,
                (true, false) => (live, Value::Null),
                (false, true) => (Value::Null, baton_diff::prepare(&one.target)),
                (false, false) => {
                    let difference = baton_diff::subset(&baton_diff::prepare(&one.target), &live, &rules);
                    (difference.live, difference.predicted)
                }
            };
            differing += self.tell(&Some(difference), &one.key)?;
        }
        Ok(differing)
    }

    /// Prints one difference; how many there were.
    fn tell(&self, difference: &Option<(Value, Value)>, key: &ResourceKey) -> Result<usize, Failure> {
        let Some((live, wanted)) = difference else { return Ok(0) };
        let place = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
        let title = format!("{}/{} {place}{}", key.group, key.kind, key.name);
        print::out(&baton_diff::unified(live, wanted, title.trim_start_matches('/')))?;
        Ok(1)
    }
}

/// # Errors
/// Something is asked for that a server does not show.
fn wanted_now(revisions: &[String], repositories: &MappedRepositories) -> Result<(), Failure> {
    if revisions.is_empty() && repositories.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(
        "a server shows what is wanted now, of the repositories it reads itself: leave --revision and --repo out, or add \
         --core to have this command read them",
    ))
}

/// The object as it is and as a sync would make it, where these differ.
async fn changed(
    desk: &Desk,
    target: &Value,
    live: Option<&Value>,
) -> Result<Option<(Value, Value)>, Failure> {
    let prepared = baton_diff::prepare(target);
    let Some(live) = live else { return Ok(Some((Value::Null, prepared))) };
    let application = desk.application.metadata.annotations.as_ref();
    let options = application
        .and_then(|annotations| annotations.get(baton_api::names::resource::COMPARE_OPTIONS))
        .map(|text| CompareOptions::parse(text))
        .unwrap_or_default();
    if !options.include_mutations && baton_diff::quick(&prepared, live, &desk.rules) == Quick::Same {
        return Ok(None);
    }
    let difference = match desk.cluster.predict(&prepared).await {
        Ok(predicted) => {
            baton_diff::compare(&prepared, &predicted, live, &desk.rules, options.include_mutations)
        }
        Err(PredictError::Failed(error)) => return Err(Failure::api(error.to_string())),
        Err(_) => baton_diff::subset(&prepared, live, &desk.rules),
    };
    Ok(difference.modified.then_some((difference.live, difference.predicted)))
}
