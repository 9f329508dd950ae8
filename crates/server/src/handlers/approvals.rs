//! The inbox of what waits for a person.

use std::time::Duration;

use baton_api::{Application, ApplicationSet};
use futures::StreamExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Updates;
use super::applications::{Named, deed};
use super::rollouts::{LONGEST_REASON, nonce};
use super::sets::set_deed;
use crate::approvals::{self, Approval, Kind};
use crate::audit::Deed;
use crate::error::{Code, Error};
use crate::rollouts::Action;
use crate::server::{Context, Server};

/// Most items of one request.
const MOST: usize = 500;
/// How often the inbox is looked at for whoever listens, at most.
const TICK: Duration = Duration::from_secs(1);
/// How often it is looked at though nothing happens.
const LOOK: Duration = Duration::from_secs(5);

/// What a person decides of things that wait.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Verdict {
    /// Of which.
    pub items: Vec<Item>,
    /// Why.
    pub reason: String,
}

/// One thing that waits, as the person saw it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "VerdictItem")]
pub struct Item {
    /// Its id.
    pub id: String,
    /// The hash it had.
    pub set_hash: String,
}

impl Server {
    /// What waits for a person, as far as the caller may see it; the longest wait first.
    ///
    /// # Errors
    /// Not everything was seen yet.
    pub async fn approvals(&self, context: &Context) -> Result<Value, Error> {
        self.ready().await?;
        Ok(json!({"items": self.inbox(context)}))
    }

    /// Approves what waits, each only as the person saw it.
    ///
    /// # Errors
    /// The request makes no sense; what cannot be approved is told of each.
    pub async fn approve(&self, context: &Context, verdict: &Verdict) -> Result<Value, Error> {
        self.decide(context, verdict, true).await
    }

    /// Refuses what waits.
    ///
    /// # Errors
    /// There is no reason; what cannot be refused is told of each.
    pub async fn reject(&self, context: &Context, verdict: &Verdict) -> Result<Value, Error> {
        if verdict.reason.trim().is_empty() {
            return Err(Error::invalid("say why it is rejected"));
        }
        self.decide(context, verdict, false).await
    }

    /// The inbox whenever it changed.
    ///
    /// # Errors
    /// Not everything was seen yet.
    pub async fn watch_approvals(&self, context: &Context) -> Result<Updates, Error> {
        self.ready().await?;
        let listener = Listener {
            rounds: self.0.boards.subscribe(),
            server: self.clone(),
            context: context.clone(),
            told: None,
            ended: false,
        };
        Ok(futures::stream::unfold(listener, |mut listener| async {
            let next = listener.next().await?;
            Some((next, listener))
        })
        .boxed())
    }

    fn inbox(&self, context: &Context) -> Vec<Approval> {
        let mut items = Vec::new();
        // Most wait for nothing, which is seen without reading them whole.
        let waits = |raw: &Value| {
            let rows = raw["status"]["resources"].as_array();
            rows.is_some_and(|rows| rows.iter().any(|row| row["requiresDeletionApproval"] == true))
        };
        for raw in self.0.applications.all().iter().filter(|raw| waits(raw) && self.sees(context, raw)) {
            let found = Application::deserialize(&**raw).ok().and_then(|one| approvals::of_application(&one));
            items.extend(found);
        }
        for raw in self.0.sets.all().iter().filter(|raw| self.sees_set(context, raw)) {
            items.extend(
                ApplicationSet::deserialize(&**raw).map(|set| approvals::of_set(&set)).unwrap_or_default(),
            );
        }
        for item in &mut items {
            let right = self.right_to(context, item);
            item.allowed = right.is_ok();
            item.why_not = right.err().map(|error| error.message).unwrap_or_default();
        }
        items.sort_by(|left, right| (left.since, &left.id).cmp(&(right.since, &right.id)));
        items
    }

    /// Whether the caller may approve it.
    fn right_to(&self, context: &Context, item: &Approval) -> Result<(), Error> {
        let project = if item.project.is_empty() { baton_api::names::DEFAULT_PROJECT } else { &item.project };
        let object = self.policy_name(project, &item.object.namespace, &item.object.name);
        match item.kind {
            Kind::Prune | Kind::Delete => {
                let unapproved = item.resources.iter().filter(|one| !one.approved);
                let keys: Vec<_> = unapproved
                    .map(|one| baton_api::object::ResourceKey {
                        group: one.group.clone(),
                        kind: one.kind.clone(),
                        namespace: one.namespace.clone(),
                        name: one.name.clone(),
                    })
                    .collect();
                self.demand_approval(context, &object, &keys, false)
            }
            Kind::Fuse => self.demand(context, "applicationsets", &Action::ApproveDeletion.right(), &object),
            Kind::Phase => self.demand(context, "applicationsets", &Action::Advance.right(), &object),
        }
    }

    async fn decide(&self, context: &Context, verdict: &Verdict, approve: bool) -> Result<Value, Error> {
        if verdict.items.is_empty() || verdict.items.len() > MOST {
            return Err(Error::invalid(format!("name 1 to {MOST} items")));
        }
        if verdict.reason.len() > LONGEST_REASON {
            return Err(Error::invalid(format!("a reason has up to {LONGEST_REASON} characters")));
        }
        let mut answers = Vec::with_capacity(verdict.items.len());
        let mut denied = None;
        for item in &verdict.items {
            let records = context.records();
            let result = self.decide_one(context, item, &verdict.reason, approve).await;
            if let Err(error) = &result
                && context.records() == records
            {
                self.unseen(context, item, approve, error).await;
            }
            let ok = result.is_ok();
            let message = result.unwrap_or_else(|error| {
                let message = error.message.clone();
                if error.code == Code::PermissionDenied {
                    denied.get_or_insert((0, error)).0 += 1;
                }
                message
            });
            answers.push(json!({"id": item.id, "ok": ok, "message": message}));
        }
        match denied {
            // Whoever may decide nothing of what it names is told so as by any other call.
            Some((count, error)) if count == answers.len() => Err(error),
            _ => Ok(json!({"items": answers})),
        }
    }

    /// Writes down a decision of what the caller may not see.
    async fn unseen(&self, context: &Context, item: &Item, approve: bool, error: &Error) {
        let Some((kind, namespace, name)) = approvals::read_id(&item.id) else { return };
        let kind = match kind {
            Kind::Prune | Kind::Delete => "Application",
            Kind::Fuse | Kind::Phase => "ApplicationSet",
        };
        let verb = if approve { "approve" } else { "reject" };
        self.denied(context, verb, "", kind, (&namespace, &name), error).await;
    }

    async fn decide_one(
        &self,
        context: &Context,
        item: &Item,
        reason: &str,
        approve: bool,
    ) -> Result<String, Error> {
        let (kind, namespace, name) = approvals::read_id(&item.id).ok_or_else(Error::hidden)?;
        let (verb, event) = if approve { ("approve", "BatonApproved") } else { ("reject", "BatonRejected") };
        match kind {
            Kind::Prune | Kind::Delete => {
                let at = Named { name, namespace, project: String::new() };
                let found = self.find(context, &at, "get").await?;
                let record = Deed { why: reason.to_owned(), ..deed(verb, event, &found) };
                let result = async {
                    let waits = approvals::of_application(&found.typed).filter(|waits| waits.kind == kind);
                    let waits = waits.ok_or_else(over)?;
                    self.right_to(context, &waits)?;
                    unchanged(&waits, item)?;
                    match (approve, kind) {
                        (true, _) => {
                            let keys = approvals::waiting(&found.typed);
                            self.grant(context, &found, &keys).await?;
                            Ok(format!("{} resources may be deleted", keys.len()))
                        }
                        (false, Kind::Prune) => {
                            self.end_operation(&found.raw).await?;
                            Ok("the sync ends and deletes nothing".to_owned())
                        }
                        (false, _) => Err(Error::precondition(
                            "a deletion cannot be taken back: the Application stays as it is until somebody approves it",
                        )),
                    }
                };
                let result = result.await;
                self.audited(context, record, result).await
            }
            Kind::Fuse | Kind::Phase => {
                let found = self.find_set(context, &namespace, &name, "get").await?;
                let record = Deed { why: reason.to_owned(), ..set_deed(verb, event, &found.raw) };
                let result = async {
                    let mut waiting = approvals::of_set(&found.typed).into_iter();
                    let waits = waiting.find(|waits| waits.kind == kind).ok_or_else(over)?;
                    self.right_to(context, &waits)?;
                    unchanged(&waits, item)?;
                    match (approve, kind) {
                        (true, Kind::Fuse) => {
                            self.pass_fuse(&found, Some(&item.set_hash)).await?;
                            Ok(format!("{} Applications may be deleted", waits.blast.applications))
                        }
                        (true, _) => {
                            let word = nonce(self.now());
                            self.annotate(&found, Action::Advance.annotation(), Some(&word), true).await?;
                            Ok("the rollout goes on".to_owned())
                        }
                        (false, Kind::Fuse) => {
                            Ok("nothing is deleted; mend the generators, or the set keeps asking".to_owned())
                        }
                        (false, _) => {
                            self.demand(context, "applicationsets", &Action::Abort.right(), &found.object)?;
                            let word = nonce(self.now());
                            self.annotate(&found, Action::Abort.annotation(), Some(&word), true).await?;
                            Ok("the rollout is aborted".to_owned())
                        }
                    }
                };
                let result = result.await;
                self.audited(context, record, result).await
            }
        }
    }
}

/// Somebody who listens to the inbox.
struct Listener {
    server: Server,
    context: Context,
    rounds: watch::Receiver<u64>,
    told: Option<Value>,
    ended: bool,
}

// === impl Listener ===

impl Listener {
    async fn next(&mut self) -> Option<Result<Value, Error>> {
        if self.ended {
            return None;
        }
        loop {
            let items = json!({"items": self.server.inbox(&self.context)});
            if self.told.as_ref() != Some(&items) {
                self.told = Some(items.clone());
                return Some(Ok(json!({"result": items})));
            }
            // Applications of no set wait for people too, so it is looked at now and then in any case.
            let _ = tokio::time::timeout(LOOK, self.rounds.changed()).await;
            tokio::time::sleep(TICK).await;
            match self.server.again(&self.context).await {
                Ok(context) => self.context = context,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

fn over() -> Error {
    Error::new(Code::Aborted, "it does not wait any more")
}

/// Whether what waits is what the person saw.
fn unchanged(waits: &Approval, item: &Item) -> Result<(), Error> {
    match waits.set_hash == item.set_hash {
        true => Ok(()),
        false => Err(Error::new(Code::Aborted, "what waits has changed since: look at it again")),
    }
}
