//! Projects, and the tokens of their roles.

use std::sync::Arc;

use baton_api::AppProject;
use serde_json::{Value, json};

use super::accounts::{NewToken, prepare};
use super::clusters::ClusterQuery;
use crate::audit::{Affected, Deed};
use crate::auth;
use crate::error::Error;
use crate::objects::{PROJECTS, text};
use crate::server::{Context, Server, plain};

impl Server {
    /// The projects that the caller may see.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn projects(&self, context: &Context, name: &str) -> Result<Value, Error> {
        let all = self.objects(PROJECTS, &self.0.settings.namespace).list("").await?;
        let named = |project: &Value| name.is_empty() || text(project, "/metadata/name") == name;
        let seen = |project: &Value| self.may(context, "projects", "get", text(project, "/metadata/name"));
        let items: Vec<Value> =
            all.into_iter().filter(|project| named(project) && seen(project)).map(plain).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One project.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn project(&self, context: &Context, name: &str) -> Result<Value, Error> {
        if !self.may(context, "projects", "get", name) {
            return Err(Error::hidden());
        }
        let found = self.objects(PROJECTS, &self.0.settings.namespace).find(name).await?;
        found.map(plain).ok_or_else(|| no_project(name))
    }

    /// A project with the repositories and clusters that are registered for it, as far as the caller may see them.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn detailed_project(&self, context: &Context, name: &str) -> Result<Value, Error> {
        let project = self.project(context, name).await?;
        let repositories = self.repositories(context, "", name).await?;
        let clusters = self.clusters(context, &ClusterQuery::default()).await?;
        let items = clusters["items"].as_array().into_iter().flatten();
        let own: Vec<&Value> = items.filter(|cluster| cluster["project"] == name).collect();
        let globals = self.global_projects(context, name).await?;
        Ok(json!({
            "project": project, "globalProjects": globals["items"], "repositories": repositories["items"],
            "clusters": own,
        }))
    }

    /// The Events about a project.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn project_events(&self, context: &Context, name: &str) -> Result<Value, Error> {
        let project = self.project(context, name).await?;
        self.events_about(&self.0.settings.namespace, name, text(&project, "/metadata/uid")).await
    }

    /// Makes a token of a project's role.
    ///
    /// # Errors
    /// The caller may not, or there is no such role.
    pub async fn create_project_token(
        &self,
        context: &Context,
        project: &str,
        role: &str,
        request: NewToken,
    ) -> Result<Value, Error> {
        let known = self.changes_tokens(context, project, role)?;
        let deed = self.token_deed("create token", "BatonTokenCreated", &known, role);
        let result = self.issue_for_role(context, &known, role, request).await;
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    /// Revokes a token of a project's role, by its name or by when it was issued.
    ///
    /// # Errors
    /// The caller may not, or there is no such token.
    pub async fn delete_project_token(
        &self,
        context: &Context,
        project: &str,
        role: &str,
        iat: i64,
        id: &str,
    ) -> Result<Value, Error> {
        let known = self.changes_tokens(context, project, role)?;
        let deed = self.token_deed("revoke token", "BatonTokenRevoked", &known, role);
        let is_meant = |token: &baton_api::project::JwtToken| match id {
            "" => token.iat == iat,
            id => token.id == id,
        };
        let result = self
            .edit_project(&known, |project| {
                let mut found = false;
                let mut take = |tokens: &mut Vec<baton_api::project::JwtToken>| {
                    let before = tokens.len();
                    tokens.retain(|token| !is_meant(token));
                    found |= tokens.len() != before;
                };
                project
                    .spec
                    .roles
                    .iter_mut()
                    .filter(|one| one.name == role)
                    .for_each(|one| take(&mut one.jwt_tokens));
                if let Some(tokens) = project.status.jwt_tokens_by_role.get_mut(role) {
                    take(&mut tokens.items);
                }
                found.then_some(()).ok_or_else(|| Error::not_found("there is no such token"))
            })
            .await
            .map(|()| json!({}));
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    async fn issue_for_role(
        &self,
        context: &Context,
        project: &AppProject,
        role: &str,
        request: NewToken,
    ) -> Result<Value, Error> {
        let key = context.configuration.key.as_ref();
        let key =
            key.ok_or_else(|| Error::internal("argocd-secret has no server.secretkey to sign tokens with"))?;
        let name = project.metadata.name.as_deref().unwrap_or_default();
        let now = self.now();
        let of_role = project.status.jwt_tokens_by_role.get(role);
        let ids = of_role.iter().flat_map(|tokens| &tokens.items).map(|token| token.id.as_str());
        let token = prepare(&request, now.as_second(), ids)?;
        let signed = auth::lasting(key, format!("proj:{name}:{role}"), now, token.exp, &token.id);
        let entry = baton_api::project::JwtToken { iat: token.iat, exp: token.exp, id: token.id };
        self.edit_project(project, |project| {
            // Argo CD reads them in both places.
            let roles = project.spec.roles.iter_mut().filter(|known| known.name == role);
            roles.for_each(|known| known.jwt_tokens.push(entry.clone()));
            project.status.jwt_tokens_by_role.entry(role.to_owned()).or_default().items.push(entry.clone());
            Ok(())
        })
        .await?;
        Ok(json!({"token": signed}))
    }

    async fn edit_project(
        &self,
        project: &AppProject,
        change: impl Fn(&mut AppProject) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let name = project.metadata.name.as_deref().unwrap_or_default();
        let projects = self.objects(PROJECTS, &self.0.settings.namespace);
        let raw = projects.find(name).await?.ok_or_else(Error::hidden)?;
        let mut outcome = Ok(());
        let patch = baton_api::edit::edit::<AppProject>(&raw, |project| outcome = change(project));
        outcome?;
        let patch = patch.map_err(|error| Error::internal(error.to_string()))?;
        let Some(mut patch) = patch else { return Ok(()) };
        patch["metadata"] = json!({"resourceVersion": text(&raw, "/metadata/resourceVersion")});
        projects.merge(name, &patch).await.map(drop)
    }

    /// The project, where the caller may make and revoke tokens of the role: who may change the project, and who holds
    /// the role by a group.
    fn changes_tokens(&self, context: &Context, project: &str, role: &str) -> Result<Arc<AppProject>, Error> {
        let known = context.configuration.projects.get(project);
        let held = known.and_then(|known| known.spec.roles.iter().find(|one| one.name == role));
        let member =
            held.is_some_and(|role| role.groups.iter().any(|group| context.caller.groups.contains(group)));
        if !member {
            self.demand(context, "projects", "update", project)?;
        }
        let known = known.ok_or_else(|| no_project(project))?;
        match held {
            Some(_) => Ok(known.clone()),
            None => Err(Error::not_found(format!("project '{project}' does not have role '{role}'"))),
        }
    }

    fn token_deed(&self, verb: &'static str, reason: &'static str, project: &AppProject, role: &str) -> Deed {
        let [name, uid] =
            [&project.metadata.name, &project.metadata.uid].map(|text| text.clone().unwrap_or_default());
        let namespace = self.0.settings.namespace.clone();
        let object = Affected { kind: "AppProject", namespace, project: name.clone(), name, uid };
        Deed { verb, reason, object, detail: format!("of role {role}"), ..Deed::default() }
    }
}

/// What somebody is told who may do something to a project of that name.
pub(super) fn no_project(name: &str) -> Error {
    Error::not_found(format!("appprojects.argoproj.io \"{name}\" not found"))
}
