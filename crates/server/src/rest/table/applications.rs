//! Applications and their resources.

use baton_api::application::ApplicationSpec;

use super::super::document::{application, applications, nothing};
use super::super::operation::{Kind, Operation, Parameter, of};
use super::super::route::Route;
use super::parameters::*;
use crate::handlers::actions::RunAction;
use crate::handlers::applications::PatchRequest;
use crate::handlers::operations::{RollbackRequest, SyncRequest};

pub(super) const ALL: &[Operation] = &[
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
    Operation::put(
        "/api/v1/applications/{name}/spec",
        Route::UpdateSpec,
        "Replaces the spec of an Application.",
    )
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
    Operation::get(
        "/api/v1/applications/{name}/resource",
        Route::Resource,
        "One resource of an Application.",
    )
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
    Operation::get(
        "/api/v1/applications/{name}/events",
        Route::ApplicationEvents,
        "Events about an Application.",
    )
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
    // === what is read around them ===
    Operation::get(
        "/api/v1/applications/{name}/logs",
        Route::Logs,
        "What containers of the Application's Pods have written, line by line.",
    )
    .query(&LOGS)
    .stream(),
    Operation::get(
        "/api/v1/applications/{name}/pods/{podName}/logs",
        Route::PodLogs,
        "What a container of one Pod has written, line by line.",
    )
    .query(&LOGS)
    .stream(),
    Operation::get(
        "/api/v1/applications/{name}/revisions/{revision}/metadata",
        Route::RevisionMetadata,
        "Who wrote a commit of a source, when, and with which message.",
    )
    .query(REVISION),
    Operation::get(
        "/api/v1/applications/{name}/revisions/{revision}/chartdetails",
        Route::ChartDetails,
        "What a version of a chart that is a source says of itself.",
    )
    .query(REVISION),
    Operation::get(
        "/api/v1/applications/{name}/links",
        Route::ApplicationLinks,
        "The links that are set for an Application.",
    )
    .query(ONE),
    Operation::get(
        "/api/v1/applications/{name}/resource/links",
        Route::ResourceLinks,
        "The links that are set for a resource of an Application.",
    )
    .query(RESOURCE),
];

/// Which lines of which Pods.
const LOGS: [Parameter; 19] = [
    APP_NAMESPACE,
    OF_PROJECT,
    NAMESPACE,
    GROUP,
    KIND,
    RESOURCE_NAME,
    text("podName", "Only of this Pod"),
    text("container", "Only of this container; else of the only one"),
    flag("follow", "Whether the stream goes on as more is written"),
    flag("previous", "Whether the run before the present one is meant"),
    number("tailLines", "How many lines of each container at most; 0 is all"),
    number("sinceSeconds", "Only what is not older than this; 0 is all"),
    text("sinceTime", "Only what is not older than this time"),
    text("sinceTime.seconds", "The same, in seconds since 1970"),
    text("untilTime", "Only what is not newer than this time"),
    text("filter", "Only lines with this text, or after an exclamation mark those without"),
    flag("matchCase", "Whether capitals count in it"),
    flag("download", "Whether the lines come as a file"),
    text("version", "Not looked at: Pods have one"),
];

/// Which revision of which source.
const REVISION: &[Parameter] = &[
    APP_NAMESPACE,
    OF_PROJECT,
    number("sourceIndex", "Place of the source among several, from 0"),
    number("versionId", "The sync of the history whose sources are meant"),
];
