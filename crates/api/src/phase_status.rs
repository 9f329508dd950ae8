//! `status.phases`: how far phased deployments are. Nothing else holds this state.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::wire::{wire, words};

wire! {
    /// The phased deployment of one generator.
    pub struct GeneratorPhases {
        required {
            /// Place of the generator in the set, counted from 0.
            generator: i64,
            /// The phase under way, counted from 0; equals `totalPhases` when all are done.
            current_phase: i64,
        }
        optional {
            /// Which kind of generator it is, for example `clusters`.
            generator_type: String,
            /// Identity of the rollout; a new one begins at the first phase.
            #[serde(rename = "rolloutID")]
            rollout_id: String,
            /// The last run that it went on in with nothing new for its Applications; absent while that is the first.
            amended: String,
            /// How many phases there are.
            total_phases: i64,
            /// How far it is.
            state: PhaseState,
            /// In words.
            message: String,
            /// When it began.
            started_at: Option<Time>,
            /// When it ended.
            finished_at: Option<Time>,
            /// When it is looked at again without an event.
            next_check_at: Option<Time>,
            /// How many targets no phase matches.
            unassigned_count: i64,
            /// The first of them.
            unassigned: Vec<String>,
            /// The phases, in order.
            phases: Vec<PhaseStatus>,
            /// What people asked for last, by kind of request: the same text is not answered twice.
            granted: BTreeMap<String, String>,
            /// What of it could not be done, and why.
            refused: Vec<String>,
        }
    }

    /// One phase.
    pub struct PhaseStatus {
        required {
            /// Name of the phase.
            name: String,
        }
        optional {
            /// How far it is.
            state: PhaseState,
            /// In words.
            message: String,
            /// When it began.
            started_at: Option<Time>,
            /// When it ended.
            finished_at: Option<Time>,
            /// Until when it waits.
            wait_until: Option<Time>,
            /// How many targets it matches.
            matched: i64,
            /// How many of them it updates.
            selected: i64,
            /// How many are updated.
            updated: i64,
            /// How many are healthy.
            healthy: i64,
            /// How many have failed.
            failed: i64,
            /// Its Applications, by name.
            applications: Vec<PhaseApplication>,
            /// Hooks before it.
            pre_hooks: Vec<HookResult>,
            /// Hooks after it.
            post_hooks: Vec<HookResult>,
            /// Its checks.
            checks: Vec<HookResult>,
            /// Why it failed, and what was done.
            failure: Option<PhaseFailure>,
            /// Object that holds results too many for this place.
            details_ref: String,
        }
    }

    /// One Application in a phase.
    pub struct PhaseApplication {
        required {
            /// Its name.
            name: String,
        }
        optional {
            /// How far it is.
            state: PhaseApplicationState,
            /// Since when.
            since: Option<Time>,
            /// Hash of what it is to be.
            pin: String,
        }
    }

    /// Result of a hook or a check.
    pub struct HookResult {
        required {
            /// Its name.
            name: String,
        }
        optional {
            /// The target it ran for; empty for the whole phase.
            target: String,
            /// How far it is.
            state: HookState,
            /// In words, without inputs.
            message: String,
            /// When the first attempt began.
            started_at: Option<Time>,
            /// When the last attempt ended.
            finished_at: Option<Time>,
            /// How long the last attempt took.
            duration_milliseconds: i64,
            /// Number of attempts.
            attempt: i64,
            /// HTTP status, or exit code of the command.
            code: Option<i64>,
            /// When it is tried again.
            next_attempt_at: Option<Time>,
            /// Key sent with every attempt.
            idempotency_key: String,
            /// The last target, in the order of names, that it was begun for. Those before it that have no result of
            /// their own here have passed.
            through: String,
            /// How many targets it has passed for, where results are kept elsewhere.
            succeeded: i64,
            /// How many targets it has failed for, where results are kept elsewhere.
            failed: i64,
        }
    }

    /// Why a phase failed.
    pub struct PhaseFailure {
        required {
            /// In one word.
            reason: String,
        }
        optional {
            /// In words.
            message: String,
            /// When.
            at: Option<Time>,
            /// What was done.
            action: String,
            /// What a person can do.
            remedy: String,
            /// Applications put back.
            rolled_back: Vec<String>,
            /// Applications that had no good state to go back to.
            not_rolled_back: Vec<String>,
        }
    }
}

words! {
    /// How far a phase is.
    open enum PhaseState {
        /// Not begun.
        Pending = "Pending",
        /// Running hooks before it.
        PreHooks = "PreHooks",
        /// Changing Applications.
        Deploying = "Deploying",
        /// Running checks.
        Checking = "Checking",
        /// Running hooks after it.
        PostHooks = "PostHooks",
        /// Waiting after it.
        Waiting = "Waiting",
        /// Held by a person.
        Paused = "Paused",
        /// Putting Applications back.
        RollingBack = "RollingBack",
        /// Put back.
        RolledBack = "RolledBack",
        /// Failed, and left as it is.
        Failed = "Failed",
        /// Ended early.
        Aborted = "Aborted",
        /// Nothing to do.
        Skipped = "Skipped",
        /// Done.
        Complete = "Complete",
    }

    /// How far an Application is in its phase.
    open enum PhaseApplicationState {
        /// Its turn has not come.
        Held = "Held",
        /// It changes.
        Updating = "Updating",
        /// It changes, and a person has to approve a deletion first.
        AwaitingApproval = "AwaitingApproval",
        /// It is done.
        Healthy = "Healthy",
        /// It is as it is to be, and was before.
        Unchanged = "Unchanged",
        /// It has failed.
        Failed = "Failed",
        /// It is being put back; its pin says to what.
        RollingBack = "RollingBack",
        /// It was put back.
        RolledBack = "RolledBack",
        /// It could not be put back; its pin says to what it should have been.
        RollbackFailed = "RollbackFailed",
    }

    /// How far a hook or a check is.
    open enum HookState {
        /// Not begun.
        Pending = "Pending",
        /// About to run, or running; written before the call.
        Running = "Running",
        /// Waiting for the next attempt.
        Retrying = "Retrying",
        /// Passed.
        Succeeded = "Succeeded",
        /// Failed.
        Failed = "Failed",
        /// Failed, and told not to mind.
        Ignored = "Ignored",
        /// Ended early.
        Cancelled = "Cancelled",
    }
}
