//! Projects and the tokens of their roles.

use super::super::document::{nothing, project, project_request, projects, token};
use super::super::operation::{Operation, of};
use super::super::route::Route;
use super::parameters::{FIELDS, NAME, text};
use crate::handlers::accounts::NewToken;

pub(super) const ALL: &[Operation] = &[
    Operation::get("/api/v1/projects", Route::Projects, "The projects that the caller may see.")
        .query(&[NAME, FIELDS])
        .answers(projects),
    Operation::post(
        "/api/v1/projects",
        Route::CreateProject,
        "Creates a project, or with `upsert` changes the one that is there.",
    )
    .takes(project_request)
    .answers(project),
    Operation::get("/api/v1/projects/{name}", Route::Project, "One project.").answers(project),
    Operation::put(
        "/api/v1/projects/{name}",
        Route::UpdateProject,
        "Replaces labels, annotations, finalizers and spec of a project; tokens of its roles stay.",
    )
    .takes(project_request)
    .answers(project),
    Operation::delete("/api/v1/projects/{name}", Route::DeleteProject, "Deletes a project that is not used.")
        .answers(nothing),
    Operation::get(
        "/api/v1/projects/{name}/detailed",
        Route::DetailedProject,
        "A project with the repositories and clusters that are registered for it.",
    ),
    Operation::get("/api/v1/projects/{name}/events", Route::ProjectEvents, "Events about a project."),
    Operation::get(
        "/api/v1/projects/{name}/syncwindows",
        Route::ProjectWindows,
        "The sync windows of a project that are open now.",
    ),
    Operation::get(
        "/api/v1/projects/{name}/globalprojects",
        Route::GlobalProjects,
        "The projects whose rules hold for a project too.",
    )
    .answers(projects),
    Operation::get(
        "/api/v1/projects/{name}/links",
        Route::ProjectLinks,
        "The links that are set for a project.",
    ),
    Operation::post(
        "/api/v1/projects/{project}/roles/{role}/token",
        Route::CreateProjectToken,
        "Makes a token of a project's role.",
    )
    .takes(of::<NewToken>)
    .answers(token),
    Operation::delete(
        "/api/v1/projects/{project}/roles/{role}/token/{iat}",
        Route::DeleteProjectToken,
        "Revokes a token of a project's role, by `id` or by the second it was issued in.",
    )
    .query(&[text("id", "Name of the token")])
    .answers(nothing),
];
