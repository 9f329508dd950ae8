//! ApplicationSets.

use super::super::document::{generation, nothing, set, sets};
use super::super::operation::Operation;
use super::super::route::Route;
use super::parameters::*;

pub(super) const ALL: &[Operation] = &[
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
    Operation::get("/api/v1/applicationsets/{name}", Route::Set, "One set.")
        .query(&[SET_NAMESPACE])
        .answers(set),
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
];
