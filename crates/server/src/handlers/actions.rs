//! What the resources of an Application offer to have done to them.

use std::collections::BTreeMap;

use baton_api::edit::difference;
use baton_api::names::application::DELETION_APPROVED;
use baton_api::object::{Object as _, ResourceKey};
use baton_health::Change;
use baton_sync::approval;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::applications::{Found, Named, deed};
use super::resources::{Resource, api_version};
use crate::approvals;
use crate::audit::Deed;
use crate::error::{Code, Error};
use crate::fleet::Place;
use crate::objects::{APPLICATIONS, text};
use crate::server::{Context, Server};

/// The action that everything offers whose deletion waits for approval.
pub(crate) const APPROVE: &str = "approve-deletion";
/// What approves all that an Application's operation would delete.
pub(crate) const APPROVE_ALL: &str = "action/argoproj.io/Application/approve-deletion";

/// A request to run an action.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunAction {
    /// API group of the resource.
    pub group: String,
    /// Its API version inside the group.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub resource_name: String,
    /// Which action.
    pub action: String,
    /// What is told to it.
    pub resource_action_parameters: Option<Vec<Parameter>>,
    /// Namespace of the Application, as in the query.
    pub app_namespace: String,
    /// Its project, as in the query.
    pub project: String,
}

impl RunAction {
    /// A request to run an action on a resource that needs to be told nothing.
    pub fn of(resource: Resource, action: String) -> RunAction {
        let Resource { group, version, kind, namespace, resource_name } = resource;
        RunAction { group, version, kind, namespace, resource_name, action, ..RunAction::default() }
    }

    fn resource(&self) -> Resource {
        Resource {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            resource_name: self.resource_name.clone(),
        }
    }
}

/// A parameter of an action.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ActionParameter")]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Server {
    /// The actions that a resource offers, with whether the caller may run them left to the running.
    ///
    /// # Errors
    /// The caller may not see it, or it is none of the Application's.
    pub async fn actions(&self, context: &Context, at: &Named, which: &Resource) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let mut offered = Vec::new();
        if is_itself(&found, which) {
            if !approvals::waiting(&found.typed).is_empty() {
                offered.push(offer(APPROVE, false, "Approve Deletion", "fa fa-check", &[]));
            }
            return Ok(json!({"actions": offered}));
        }
        let place = self.place(context, &found).await?;
        let live = self.own(&found, &place, which).await?;
        if approvals::waiting(&found.typed).contains(&live.key()) {
            offered.push(offer(APPROVE, false, "Approve Deletion", "fa fa-check", &[]));
        }
        let actions = baton_health::actions(&live, &place.customizations)
            .map_err(|error| Error::precondition(error.to_string()))?;
        for action in actions {
            let params: Vec<&str> = action.params.iter().map(|param| param.name.as_str()).collect();
            offered.push(offer(
                &action.name,
                action.disabled,
                &action.display_name,
                &action.icon_class,
                &params,
            ));
        }
        Ok(json!({"actions": offered}))
    }

    /// Runs an action.
    ///
    /// # Errors
    /// The caller may not, the resource does not offer it, or it is none of the Application's.
    pub async fn run_action(
        &self,
        context: &Context,
        at: &Named,
        request: &RunAction,
    ) -> Result<Value, Error> {
        let which = &request.resource();
        let right = format!("action/{}/{}/{}", which.group, which.kind, request.action);
        if request.action == APPROVE {
            return self.run_approval(context, at, which).await;
        }
        let found = self.find(context, at, &right).await?;
        let record = Deed {
            detail: format!(
                "{} on {}/{}/{}",
                request.action, which.kind, which.namespace, which.resource_name
            ),
            ..deed("run action", "ResourceActionRan", &found)
        };
        let result = match is_itself(&found, which) {
            true => Err(Error::invalid(format!("an Application offers no action {:?}", request.action))),
            false => self.carry_out(context, &found, request).await,
        };
        self.audited(context, record, result).await
    }

    async fn run_approval(&self, context: &Context, at: &Named, which: &Resource) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let waiting = approvals::waiting(&found.typed);
        let key = ResourceKey {
            group: which.group.clone(),
            kind: which.kind.clone(),
            namespace: which.namespace.clone(),
            name: which.resource_name.clone(),
        };
        let record = Deed {
            detail: format!("of {}/{}/{}", which.kind, which.namespace, which.resource_name),
            ..deed("approve deletion", "BatonApproved", &found)
        };
        if is_itself(&found, which) {
            let result = match self.demand_approval(context, &found.object, &waiting, true) {
                Ok(()) => self.approve_all(context, &found).await,
                Err(error) => Err(error),
            };
            return self.audited(context, record, result).await;
        }
        let result = match self.demand_approval(context, &found.object, std::slice::from_ref(&key), false) {
            Err(error) => Err(error),
            Ok(()) if !waiting.contains(&key) => {
                Err(Error::precondition("this resource does not wait for the approval of its deletion"))
            }
            Ok(()) => self.grant(context, &found, std::slice::from_ref(&key)).await.map(|()| json!({})),
        };
        self.audited(context, record, result).await
    }

    /// Lets whoever may approve the deletion of these resources go on: by a right over each, or by one over all that
    /// nothing forbids for any. `whole` says that the approval holds for whatever the operation deletes.
    pub(crate) fn demand_approval(
        &self,
        context: &Context,
        object: &str,
        keys: &[ResourceKey],
        whole: bool,
    ) -> Result<(), Error> {
        let all = self.decision(context, "applications", APPROVE_ALL, object);
        for key in keys {
            let right = format!("action/{}/{}/{APPROVE}", key.group, key.kind);
            let own = self.decision(context, "applications", &right, object);
            if own.forbidden || !(own.allowed || all.allowed) {
                return self.demand(context, "applications", &right, object);
            }
        }
        if whole || keys.is_empty() {
            self.demand(context, "applications", APPROVE_ALL, object)
        } else {
            Ok(())
        }
    }

    /// Approves all that the Application's operation would delete.
    async fn approve_all(&self, context: &Context, found: &Found) -> Result<Value, Error> {
        if approvals::operation(&found.typed).is_none() {
            return Err(Error::precondition(
                "no sync or deletion is under way, so there is nothing to approve",
            ));
        }
        let annotations = self.word(context, found);
        let patch =
            json!({"metadata": {"uid": text(&found.raw, "/metadata/uid"), "annotations": annotations}});
        let applications = self.objects(APPLICATIONS, text(&found.raw, "/metadata/namespace"));
        applications.merge(text(&found.raw, "/metadata/name"), &patch).await.map(|_| json!({}))
    }

    /// What an approval of all that an Application's operation would delete is, however it was asked for: the server's time,
    /// and beside it who gave it, for which operation, and what waited then.
    pub(super) fn word(&self, context: &Context, found: &Found) -> Map<String, Value> {
        let since = approvals::operation(&found.typed).map(|(_, since)| since);
        let at = self.now().max(since.unwrap_or(Timestamp::MIN));
        let operation = since.map(approval::operation_name).unwrap_or_default();
        let waiting = approvals::waiting(&found.typed);
        let mut word = approval::grant(&waiting, context.caller.actor(), at, &operation);
        word.insert(DELETION_APPROVED.to_owned(), at.to_string().into());
        word
    }

    /// Approves the deletion of exactly these resources, together, for the operation that waits for them and no other.
    pub(crate) async fn grant(
        &self,
        context: &Context,
        found: &Found,
        keys: &[ResourceKey],
    ) -> Result<(), Error> {
        let nothing =
            || Error::precondition("no sync or deletion is under way, so there is nothing to approve");
        let (_, since) = approvals::operation(&found.typed).ok_or_else(nothing)?;
        let actor = context.caller.actor();
        let note = approval::grant(keys, actor, self.now().max(since), &approval::operation_name(since));
        let place = self.place(context, found).await?;
        for key in keys {
            let row = found.typed.status.resources.iter().find(|row| approvals::key(row) == *key);
            let row =
                row.ok_or_else(|| Error::precondition(format!("{key} is none of the Application's")))?;
            // One that is gone needs no approval any more.
            let Some(live) = place.fetch(&api_version(&row.group, &row.version), key).await? else {
                continue;
            };
            let patch = json!({"metadata": {"uid": live.uid(), "annotations": note}});
            let content = "application/merge-patch+json";
            place.send(http::Method::PATCH, live.api_version(), key, &patch, content).await?;
        }
        Ok(())
    }

    async fn carry_out(&self, context: &Context, found: &Found, request: &RunAction) -> Result<Value, Error> {
        let place = self.place(context, found).await?;
        let live = self.own(found, &place, &request.resource()).await?;
        let given = request.resource_action_parameters.iter().flatten();
        let params: BTreeMap<String, String> =
            given.map(|one| (one.name.clone(), one.value.clone())).collect();
        let changes = baton_health::run_action(&live, &request.action, &params, &place.customizations)
            .map_err(|error| Error::invalid(error.to_string()))?;
        for change in changes {
            apply(&place, &live, change).await?;
        }
        Ok(json!({}))
    }
}

async fn apply(place: &Place, live: &Value, change: Change) -> Result<(), Error> {
    match change {
        Change::Create(object) => {
            let key = object.key();
            // A script makes things beside its own object, and nowhere else.
            if key.namespace != live.namespace() {
                return Err(Error::new(
                    Code::PermissionDenied,
                    "the action would create an object in another namespace",
                ));
            }
            place
                .send(http::Method::POST, object.api_version(), &key, &object, "application/json")
                .await
                .map(drop)
        }
        Change::Patch(object) => {
            if object.key() != live.key() {
                return Err(Error::new(Code::PermissionDenied, "the action would change another object"));
            }
            let patch = difference(live, &object);
            if patch.as_object().is_some_and(serde_json::Map::is_empty) {
                return Ok(());
            }
            let content = "application/merge-patch+json";
            place
                .send(http::Method::PATCH, object.api_version(), &object.key(), &patch, content)
                .await
                .map(drop)
        }
    }
}

/// Whether the Application itself is meant.
fn is_itself(found: &Found, which: &Resource) -> bool {
    let name = found.typed.metadata.name.as_deref().unwrap_or_default();
    which.kind == "Application" && which.group == baton_api::names::GROUP && which.resource_name == name
}

fn offer(name: &str, disabled: bool, display: &str, icon: &str, params: &[&str]) -> Value {
    let params: Vec<Value> = params.iter().map(|name| json!({"name": name})).collect();
    json!({"name": name, "disabled": disabled, "displayName": display, "iconClass": icon, "params": params})
}
