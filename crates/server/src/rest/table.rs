//! Every operation of the API, in one table: requests are matched by it, and the document that describes the API is made
//! of it.

use baton_api::application::ApplicationSpec;

use super::document::{
    acted, application, applications, generation, nothing, project, project_request, projects, set, sets,
    token,
};
use super::operation::{Kind, Operation, Parameter, list, of};
use super::route::Route;
use crate::approvals::Approval;
use crate::handlers::accounts::{NewPassword, NewToken};
use crate::handlers::actions::RunAction;
use crate::handlers::applications::PatchRequest;
use crate::handlers::approvals::Verdict;
use crate::handlers::operations::{RollbackRequest, SyncRequest};
use crate::handlers::rollouts::Act;
use crate::handlers::sessions::SignIn;
use crate::rollouts::{Rollout, Summary};

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind: Kind::Text }
}

const fn flag(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind: Kind::Flag }
}

const APP_NAMESPACE: Parameter =
    text("appNamespace", "Namespace of the Application; the control plane's by default");
const OF_PROJECT: Parameter = text("project", "Project of the Application, where the caller knows it");
const SET_NAMESPACE: Parameter =
    text("appsetNamespace", "Namespace of the set; the control plane's by default");
const NAME: Parameter = text("name", "Only what is of this name");
const SELECTOR: Parameter = text("selector", "Only what has these labels");
const REPO: Parameter = text("repo", "Only what is from this repository");
const FIELDS: Parameter =
    text("fields", "Only these fields of the answer, or with a leading minus all others");
const SINCE: Parameter = text("resourceVersion", "Only what is newer than this version");
const PROJECTS: Parameter =
    Parameter { name: "projects", about: "Only what is of these projects", kind: Kind::Texts };
const APP_PROJECT: Parameter = text("appProject", "Only what is registered for this project");
const PROJECT: Parameter = Parameter { name: "project", ..PROJECTS };

/// What names one Application.
const ONE: &[Parameter] = &[APP_NAMESPACE, OF_PROJECT];
const GROUP: Parameter = text("group", "API group of the resource");
const VERSION: Parameter = text("version", "API version of the resource, inside the group");
const KIND: Parameter = text("kind", "Kind of the resource");
const NAMESPACE: Parameter = text("namespace", "Namespace of the resource");
const RESOURCE_NAME: Parameter = text("resourceName", "Name of the resource");
/// What names one resource of an Application.
const RESOURCE: &[Parameter] = &[APP_NAMESPACE, OF_PROJECT, GROUP, VERSION, KIND, NAMESPACE, RESOURCE_NAME];

/// Every operation there is. What is written out comes before what a parameter stands for.
pub(super) const ALL: &[Operation] = &[
    Operation::get("/healthz", Route::Health, "Whether the server answers.").text().open(),
    Operation::get("/swagger.json", Route::Document, "This document.").open(),
    Operation::get("/api/version", Route::Version, "The version of the server.").open(),
    Operation::get("/api/v1/openapi.json", Route::Document, "This document.").open(),
    Operation::get("/api/v1/settings", Route::Settings, "What a client has to know of the server.").open(),
    Operation::get("/api/v1/session/userinfo", Route::UserInfo, "Who asks.").open(),
    Operation::post("/api/v1/session", Route::SignIn, "Signs in by name and password.")
        .takes(of::<SignIn>)
        .answers(token)
        .open(),
    Operation::delete("/api/v1/session", Route::SignOut, "Signs out.").answers(nothing).open(),
    // === issuers ===
    Operation::get("/auth/login", Route::BeginSignOn, "Sends a browser to the issuer that people sign in at.")
        .query(&[text("return_url", "The page of ours to go to afterwards")])
        .elsewhere()
        .open(),
    Operation::get("/auth/callback", Route::EndSignOn, "Where the issuer sends a browser back to.")
        .query(&[
            text("state", "Which sign-in it is"),
            text("code", "What the token is given for"),
            text("error", "Why there is none"),
        ])
        .elsewhere()
        .open(),
    Operation::get("/auth/logout", Route::SignOff, "Signs a browser out.").elsewhere().open(),
    // === accounts ===
    Operation::get("/api/v1/account", Route::Accounts, "The accounts that the caller may see."),
    Operation::get(
        "/api/v1/account/can-i/{resource}/{action}/{object...}",
        Route::CanI,
        "Whether the caller may, in the words of policies. Action and object may have slashes.",
    ),
    Operation::get("/api/v1/account/{name}", Route::Account, "One account."),
    Operation::put("/api/v1/account/password", Route::Password, "Changes a password.")
        .takes(of::<NewPassword>)
        .answers(nothing),
    Operation::post("/api/v1/account/{name}/token", Route::CreateAccountToken, "Makes a token of an account.")
        .takes(of::<NewToken>)
        .answers(token),
    Operation::delete(
        "/api/v1/account/{name}/token/{id}",
        Route::DeleteAccountToken,
        "Revokes a token of an account.",
    )
    .answers(nothing),
    // === applications ===
    Operation::get("/api/v1/applications", Route::Applications, "The Applications that the caller may see.")
        .query(&[NAME, APP_NAMESPACE, PROJECTS, PROJECT, SELECTOR, REPO, FIELDS])
        .answers(applications),
    Operation::post(
        "/api/v1/applications",
        Route::CreateApplication,
        "Creates an Application, or with `upsert` changes the one that is there.",
    )
    .query(&[flag("upsert", "Whether an Application that is there is changed")])
    .takes(application)
    .answers(application),
    Operation::get("/api/v1/applications/{name}", Route::Application, "One Application.")
        .query(&[
            APP_NAMESPACE,
            OF_PROJECT,
            Parameter {
                name: "refresh",
                about: "Answers after the Application was compared anew",
                kind: Kind::Words(&["normal", "hard"]),
            },
        ])
        .answers(application),
    Operation::put(
        "/api/v1/applications/{name}",
        Route::UpdateApplication,
        "Replaces labels, annotations, finalizers and spec of an Application.",
    )
    .query(ONE)
    .takes(application)
    .answers(application),
    Operation::patch("/api/v1/applications/{name}", Route::PatchApplication, "Changes an Application.")
        .query(ONE)
        .takes(of::<PatchRequest>)
        .answers(application),
    Operation::delete(
        "/api/v1/applications/{name}",
        Route::DeleteApplication,
        "Deletes an Application, and what it deployed unless `cascade` is false.",
    )
    .query(&[
        APP_NAMESPACE,
        OF_PROJECT,
        flag("cascade", "Whether what it deployed goes too; by default it does"),
        Parameter {
            name: "propagationPolicy",
            about: "How what it deployed goes",
            kind: Kind::Words(&["foreground", "background"]),
        },
    ])
    .answers(nothing),
    Operation::put("/api/v1/applications/{name}/spec", Route::UpdateSpec, "Replaces the spec of an Application.")
        .query(ONE)
        .takes(of::<ApplicationSpec>)
        .answers(of::<ApplicationSpec>),
    Operation::post("/api/v1/applications/{name}/sync", Route::Sync, "Starts a sync.")
        .query(ONE)
        .takes(of::<SyncRequest>)
        .answers(application),
    Operation::post(
        "/api/v1/applications/{name}/rollback",
        Route::Rollback,
        "Starts a sync of what was deployed before.",
    )
    .query(ONE)
    .takes(of::<RollbackRequest>)
    .answers(application),
    Operation::delete("/api/v1/applications/{name}/operation", Route::Terminate, "Ends what runs.")
        .query(ONE)
        .answers(nothing),
    Operation::get(
        "/api/v1/applications/{name}/resource-tree",
        Route::ResourceTree,
        "The resources of an Application, and what belongs to them.",
    )
    .query(ONE),
    Operation::get(
        "/api/v1/applications/{name}/managed-resources",
        Route::ManagedResources,
        "What is wanted of each resource, and what is there.",
    )
    .query(&[APP_NAMESPACE, OF_PROJECT, GROUP, VERSION, KIND, NAMESPACE, NAME, FIELDS]),
    Operation::get(
        "/api/v1/applications/{name}/manifests",
        Route::Manifests,
        "What is wanted of an Application, as its sources give it now.",
    )
    .query(&[
        APP_NAMESPACE,
        OF_PROJECT,
        text("revision", "The revision it wants or has: no other can be shown"),
    ]),
    Operation::get("/api/v1/applications/{name}/resource", Route::Resource, "One resource of an Application.")
        .query(RESOURCE),
    Operation::post(
        "/api/v1/applications/{name}/resource",
        Route::PatchResource,
        "Changes a resource of an Application. The body is the text of the patch.",
    )
    .query(&[
        APP_NAMESPACE,
        OF_PROJECT,
        GROUP,
        VERSION,
        KIND,
        NAMESPACE,
        RESOURCE_NAME,
        text("patchType", "The kind of patch, as `application/merge-patch+json`"),
    ])
    .takes(of::<String>),
    Operation::delete(
        "/api/v1/applications/{name}/resource",
        Route::DeleteResource,
        "Deletes a resource of an Application.",
    )
    .query(&[
        APP_NAMESPACE,
        OF_PROJECT,
        GROUP,
        VERSION,
        KIND,
        NAMESPACE,
        RESOURCE_NAME,
        flag("orphan", "Whether what belongs to the resource stays"),
    ])
    .answers(nothing),
    Operation::get(
        "/api/v1/applications/{name}/resource/actions",
        Route::ResourceActions,
        "What can be done to a resource.",
    )
    .query(RESOURCE),
    Operation::post(
        "/api/v1/applications/{name}/resource/actions",
        Route::RunAction,
        "Does something to a resource. The body is the name of the action.",
    )
    .query(RESOURCE)
    .takes(of::<String>)
    .answers(nothing),
    Operation::post(
        "/api/v1/applications/{name}/resource/actions/v2",
        Route::RunActionV2,
        "Does something to a resource.",
    )
    .query(ONE)
    .takes(of::<RunAction>)
    .answers(nothing),
    Operation::get("/api/v1/applications/{name}/events", Route::ApplicationEvents, "Events about an Application.")
        .query(ONE),
    Operation::get(
        "/api/v1/applications/{name}/syncwindows",
        Route::ApplicationWindows,
        "The sync windows that hold for an Application, and whether it may be synced now.",
    )
    .query(ONE),
    Operation::get(
        "/api/v1/stream/applications",
        Route::WatchApplications,
        "Applications as they change: those there are, then what happens.",
    )
    .query(&[NAME, APP_NAMESPACE, PROJECTS, PROJECT, SELECTOR, REPO, SINCE, FIELDS])
    .stream(),
    // === sets ===
    Operation::get("/api/v1/applicationsets", Route::Sets, "The sets that the caller may see.")
        .query(&[NAME, SET_NAMESPACE, PROJECTS, PROJECT, SELECTOR, REPO, FIELDS])
        .answers(sets),
    Operation::post(
        "/api/v1/applicationsets",
        Route::CreateSet,
        "Creates a set, or with `upsert` changes the one that is there.",
    )
    .query(&[
        flag("upsert", "Whether a set that is there is changed"),
        flag("dryRun", "Whether only the Applications it would have are shown"),
    ])
    .takes(set)
    .answers(set),
    Operation::post(
        "/api/v1/applicationsets/generate",
        Route::Generate,
        "The Applications that a set would have.",
    )
    .takes(generation),
    Operation::get("/api/v1/applicationsets/{name}", Route::Set, "One set.").query(&[SET_NAMESPACE]).answers(set),
    Operation::delete("/api/v1/applicationsets/{name}", Route::DeleteSet, "Deletes a set.")
        .query(&[SET_NAMESPACE])
        .answers(nothing),
    Operation::get(
        "/api/v1/applicationsets/{name}/resource-tree",
        Route::SetTree,
        "The Applications of a set, as a tree.",
    )
    .query(&[SET_NAMESPACE]),
    Operation::get("/api/v1/applicationsets/{name}/events", Route::SetEvents, "Events about a set.")
        .query(&[SET_NAMESPACE]),
    Operation::get("/api/v1/stream/applicationsets", Route::WatchSets, "Sets as they change.")
        .query(&[
            NAME,
            text("appSetNamespace", "Namespace of the sets; every one by default"),
            SET_NAMESPACE,
            PROJECTS,
            PROJECT,
            SELECTOR,
            REPO,
            SINCE,
            FIELDS,
        ])
        .stream(),
    // === projects ===
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
    // === what is registered: nothing that opens anything is told ===
    Operation::get("/api/v1/clusters", Route::Clusters, "The clusters that the caller may see.")
        .query(&[text("server", "Only the cluster of this URL"), NAME]),
    Operation::get("/api/v1/clusters/{id}", Route::Cluster, "One cluster.").query(&[Parameter {
        name: "id.type",
        about: "Whether the id is the URL, as by default, or the name",
        kind: Kind::Words(&["url", "url_escaped", "name", "name_escaped"]),
    }]),
    Operation::get("/api/v1/repositories", Route::Repositories, "The repositories that the caller may see.")
        .query(&[text("repo", "Only the repository of this URL"), APP_PROJECT]),
    Operation::get("/api/v1/repositories/{repo}", Route::Repository, "One repository.").query(&[APP_PROJECT]),
    Operation::get(
        "/api/v1/repocreds",
        Route::RepositoryCredentials,
        "For which URLs credentials are registered, as far as the caller may see.",
    )
    .query(&[text("url", "Only those for this URL")]),
    Operation::get("/api/v1/certificates", Route::Certificates, "Certificates and keys of hosts.").query(&[
        text("hostNamePattern", "Only hosts with this in their name"),
        Parameter { name: "certType", about: "Only of this kind", kind: Kind::Words(&["ssh", "https"]) },
        text("certSubType", "Only of this algorithm"),
    ]),
    Operation::get("/api/v1/gpgkeys", Route::Keys, "The keys that sign commits.")
        .query(&[text("keyID", "Only the key of this id")]),
    Operation::get("/api/v1/gpgkeys/{keyID}", Route::Key, "One key that signs commits."),
    // === rollouts and approvals ===
    Operation::get("/api/v1/rollouts", Route::Rollouts, "A line for every set: who needs a person first.")
        .answers(list::<Summary>),
    Operation::get("/api/v1/applicationsets/{name}/rollout", Route::Rollout, "The rollout of a set.")
        .query(&[SET_NAMESPACE])
        .answers(of::<Rollout>),
    Operation::get("/api/v1/applicationsets/{name}/plan", Route::Plan, "What a change now wanted would do.")
        .query(&[SET_NAMESPACE]),
    Operation::get("/api/v1/applicationsets/{name}/phases", Route::Phases, "The phases of a set.")
        .query(&[SET_NAMESPACE]),
    Operation::post(
        "/api/v1/applicationsets/{name}/actions",
        Route::Act,
        "Does what a person asks of a rollout and shows what came of it; with `dryRun` tells what it would do.",
    )
    .query(&[SET_NAMESPACE])
    .takes(of::<Act>)
    .answers(acted),
    Operation::get("/api/v1/stream/rollouts", Route::WatchRollouts, "Rollouts as they change.")
        .query(&[NAME, SET_NAMESPACE, flag("summary", "Whether only a line is told of each")])
        .stream(),
    Operation::get("/api/v1/approvals", Route::Approvals, "What waits for a person.").answers(list::<Approval>),
    Operation::post("/api/v1/approvals/approve", Route::Approve, "Approves what waits, as it was shown.")
        .takes(of::<Verdict>),
    Operation::post("/api/v1/approvals/reject", Route::Reject, "Refuses what waits; the reason is needed.")
        .takes(of::<Verdict>),
    Operation::get("/api/v1/stream/approvals", Route::WatchApprovals, "What waits, whenever it changed.").stream(),
    Operation::get("/api/v1/audit", Route::Audit, "Who did what, newest first.").query(&[Parameter {
        name: "limit",
        about: "How many entries at most",
        kind: Kind::Number,
    }]),
];
