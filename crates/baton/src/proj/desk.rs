//! Projects at a desk: read, written, deleted, and the tokens of their roles.

use baton_api::AppProject;
use baton_api::project::AppProjectSpec;
use baton_server::handlers::accounts::NewToken;
use baton_server::handlers::project_changes::ProjectRequest;
use baton_server::{Code, Error};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Desk, found, items, refused};
use crate::failure::Failure;
use crate::objects::text;
use crate::place::Place;
use crate::session::segment;

/// How often a change is made anew when the project changes under it.
const ATTEMPTS: usize = 10;

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Changed,
    /// It was so already.
    Unchanged,
}

/// Changes a project. Fields that this version does not know stay as they are.
///
/// # Errors
/// There is no such project, the change makes no sense, or it is refused.
pub(super) async fn edit(
    place: &Place,
    name: &str,
    change: impl Fn(&mut AppProjectSpec) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    Desk::at(place, async |desk| {
        for _ in 0..ATTEMPTS {
            let project = desk.project(name).await?;
            let Some(after) = changed(&project, &change)? else { return Ok(Outcome::Unchanged) };
            if desk.update_project(name, &after).await? {
                return Ok(Outcome::Changed);
            }
        }
        Err(Failure::api(format!("project {name} changed each time it was to be written: try again")))
    })
    .await
}

/// The same for a change that always makes sense.
pub(super) async fn arrange(
    place: &Place,
    name: &str,
    change: impl Fn(&mut AppProjectSpec),
) -> Result<Outcome, Failure> {
    let change = |spec: &mut AppProjectSpec| {
        change(spec);
        Ok(())
    };
    edit(place, name, change).await
}

/// The project after a change; none where it is the same.
fn changed(
    project: &Value,
    change: impl Fn(&mut AppProjectSpec) -> Result<(), Failure>,
) -> Result<Option<Value>, Failure> {
    let mut outcome = Ok(());
    let patch = baton_api::edit::edit::<AppProject>(project, |typed| outcome = change(&mut typed.spec));
    outcome?;
    let patch = patch.map_err(|error| Failure::failed(format!("this is no AppProject: {error}")))?;
    Ok(patch.map(|patch| {
        let mut after = project.clone();
        merge(&mut after, &patch);
        after
    }))
}

/// Applies a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let fields = target.as_object_mut().expect("made an object just above");
    for (name, change) in changes {
        match change {
            Value::Null => drop(fields.remove(name)),
            change => merge(fields.entry(name.clone()).or_insert(Value::Null), change),
        }
    }
}

// === impl Desk ===

impl Desk {
    /// All projects that the caller may see, by name.
    pub(super) async fn projects(&self) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => remote.get("api/v1/projects").await?,
            Desk::Core(core) => core.server.projects(&core.context, "").await.map_err(refused)?,
        };
        let mut projects: Vec<Value> = items(answer).into_iter().map(whole).collect();
        projects.sort_by_key(|project| text(project, "/metadata/name"));
        Ok(projects)
    }

    /// One project.
    ///
    /// # Errors
    /// Also where there is none.
    pub(super) async fn project(&self, name: &str) -> Result<Value, Failure> {
        let project = match self {
            Desk::Server(remote) => remote.find(&path(name, "")).await?,
            Desk::Core(core) => found(core.server.project(&core.context, name).await)?,
        };
        project.map(whole).ok_or_else(|| absent(name))
    }

    /// Creates a project, or with `upsert` changes the one that is there.
    pub(super) async fn create_project(&self, project: &Value, upsert: bool) -> Result<Value, Failure> {
        let made = match self {
            Desk::Server(remote) => {
                remote.post("api/v1/projects", &json!({"project": project, "upsert": upsert})).await?
            }
            Desk::Core(core) => {
                let request = ProjectRequest { project: project.clone(), upsert };
                core.server.create_project(&core.context, request).await.map_err(refused)?
            }
        };
        Ok(whole(made))
    }

    /// Puts a project in the place of the version that it was made of. `false` if that is no longer the one there.
    async fn update_project(&self, name: &str, project: &Value) -> Result<bool, Failure> {
        match self {
            Desk::Server(remote) => {
                let body = json!({"project": project});
                match remote.send(Method::PUT, &path(name, ""), Some(&body)).await {
                    Ok(_) => Ok(true),
                    Err(refusal) if refusal.is_conflict() => Ok(false),
                    Err(refusal) => Err(refusal.into()),
                }
            }
            Desk::Core(core) => {
                let request = ProjectRequest { project: project.clone(), upsert: true };
                match core.server.update_project(&core.context, name, request).await {
                    Ok(_) => Ok(true),
                    Err(Error { code: Code::Aborted, .. }) => Ok(false),
                    Err(error) => Err(refused(error)),
                }
            }
        }
    }

    /// Deletes a project that nothing uses.
    pub(super) async fn delete_project(&self, name: &str) -> Result<(), Failure> {
        match self {
            Desk::Server(remote) => remote.delete(&path(name, "")).await.map(drop),
            Desk::Core(core) => {
                core.server.delete_project(&core.context, name).await.map(drop).map_err(refused)
            }
        }
    }

    /// The sync windows of a project that are open now.
    pub(super) async fn open_windows(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let mut answer = match self {
            Desk::Server(remote) => remote.get(&path(name, "/syncwindows")).await?,
            Desk::Core(core) => core.server.project_windows(&core.context, name).map_err(refused)?,
        };
        Ok(match answer["windows"].take() {
            Value::Array(windows) => windows,
            _ => Vec::new(),
        })
    }

    /// A new token of a role.
    pub(super) async fn create_role_token(
        &self,
        project: &str,
        role: &str,
        id: &str,
        expires_in: i64,
    ) -> Result<String, Failure> {
        let answer = match self {
            Desk::Server(remote) => {
                let path = path(project, &format!("/roles/{}/token", segment(role)));
                remote.post(&path, &json!({"id": id, "expiresIn": expires_in})).await?
            }
            Desk::Core(core) => {
                let token = NewToken { id: id.to_owned(), expires_in, ..NewToken::default() };
                core.server
                    .create_project_token(&core.context, project, role, token)
                    .await
                    .map_err(refused)?
            }
        };
        match text(&answer, "/token") {
            token if token.is_empty() => Err(Failure::api("no token was given")),
            token => Ok(token),
        }
    }

    /// Revokes a token of a role.
    pub(super) async fn delete_role_token(
        &self,
        project: &str,
        role: &str,
        issued_at: i64,
    ) -> Result<(), Failure> {
        match self {
            Desk::Server(remote) => {
                let path = path(project, &format!("/roles/{}/token/{issued_at}", segment(role)));
                remote.delete(&path).await.map(drop)
            }
            Desk::Core(core) => core
                .server
                .delete_project_token(&core.context, project, role, issued_at, "")
                .await
                .map(drop)
                .map_err(refused),
        }
    }
}

fn path(name: &str, rest: &str) -> String {
    format!("api/v1/projects/{}{rest}", segment(name))
}

fn absent(name: &str) -> Failure {
    Failure::api(format!(
        "there is no project {name} that you may see; `baton proj list` shows those there are"
    ))
}

/// A project with what a server leaves out, as everybody knows it.
fn whole(mut project: Value) -> Value {
    if project["kind"].is_null() && project.is_object() {
        project["apiVersion"] = baton_api::names::API_VERSION.into();
        project["kind"] = "AppProject".into();
    }
    project
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_is_not_known_and_no_change_is_none() {
        let project = json!({
            "metadata": {"name": "shop"}, "spec": {"sourceRepos": ["a"], "fromTheFuture": {"x": 1}},
        });
        let add = |url: &'static str| {
            move |spec: &mut AppProjectSpec| {
                if !spec.source_repos.iter().any(|known| known == url) {
                    spec.source_repos.push(url.to_owned());
                }
                Ok(())
            }
        };
        let after = changed(&project, add("b")).expect("a project").expect("a change");
        assert_eq!(after["spec"], json!({"sourceRepos": ["a", "b"], "fromTheFuture": {"x": 1}}));
        assert_eq!(changed(&project, add("a")).expect("a project"), None);
        let emptied = changed(&project, |spec| {
            spec.source_repos.clear();
            Ok(())
        });
        assert_eq!(
            emptied.expect("a project").expect("a change")["spec"],
            json!({"fromTheFuture": {"x": 1}})
        );
        assert!(changed(&project, |_| Err(Failure::usage("no"))).is_err());
    }
}
