//! Rollouts and approvals.

use super::super::document::acted;
use super::super::operation::{Kind, Operation, Parameter, list, of};
use super::super::route::Route;
use super::parameters::{NAME, SET_NAMESPACE, flag};
use crate::approvals::Approval;
use crate::handlers::approvals::Verdict;
use crate::handlers::rollouts::Act;
use crate::rollouts::{Rollout, Summary};

pub(super) const ALL: &[Operation] = &[    Operation::get("/api/v1/rollouts", Route::Rollouts, "A line for every set: who needs a person first.")
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
