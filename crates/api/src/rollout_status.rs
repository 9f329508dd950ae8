//! `status.rollout`: what people and programs may see of a run through the steps.
//!
//! A view, written now and then; decisions rest on the head of the rollout, never on this.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::wire::{wire, words};

wire! {
    /// The current or last run.
    pub struct RolloutStatus {
        optional {
            /// Number of the run, growing by one with each that supersedes another.
            run: i64,
            /// How far it is.
            state: RolloutState,
            /// In words.
            message: String,
            /// Generation of the set that the run was made for.
            observed_generation: i64,
            /// Hash of the steps it follows.
            strategy_hash: String,
            /// Hash over what every Application is to become.
            pin_hash: String,
            /// The open step, counted from 1; 0 before the first.
            step: i64,
            /// The steps, in order.
            steps: Vec<StepStatus>,
            /// What each repository's revision was resolved to, once for the whole run.
            revisions: Vec<ResolvedRevision>,
            /// Version of the consistent list the run began with.
            floor_resource_version: String,
            /// When it began.
            started_at: Option<Time>,
            /// When it ended.
            finished_at: Option<Time>,
            /// When it was paused.
            paused_at: Option<Time>,
            /// How often it was begun anew because something changed.
            restarts: i64,
            /// What it waits for, the first first.
            blockers: Vec<Blocker>,
            /// When it is looked at again without an event.
            next_check_at: Option<Time>,
            /// Ordered deletion under way.
            deletion: Option<DeletionStatus>,
        }
    }

    /// One step.
    pub struct StepStatus {
        required {
            /// Its number, counted from 1; -1 for Applications in no step.
            step: i64,
        }
        optional {
            /// How far it is.
            state: StepState,
            /// How many Applications it holds.
            total: i64,
            /// How many are done.
            done: i64,
            /// How many are under way.
            updating: i64,
            /// How many have failed.
            failed: i64,
            /// How many may be under way at once; absent is all.
            max_update: Option<i64>,
            /// When it opened.
            opened_at: Option<Time>,
            /// Version of the consistent list that let it open.
            opened_resource_version: String,
            /// When it was done.
            completed_at: Option<Time>,
            /// Until when it must stay healthy.
            wait_until: Option<Time>,
        }
    }

    /// What a revision was resolved to.
    pub struct ResolvedRevision {
        required {
            /// URL of the repository.
            #[serde(rename = "repoURL")]
            repo_url: String,
            /// The revision asked for.
            target_revision: String,
            /// What it is.
            revision: String,
        }
        optional {
            /// Name of the chart, for Helm repositories.
            chart: String,
        }
    }

    /// Something that is waited for.
    pub struct Blocker {
        required {
            /// In one word.
            reason: String,
        }
        optional {
            /// What is waited for: an Application, a step, a window.
            object: String,
            /// In words.
            message: String,
            /// Since when.
            since: Option<Time>,
            /// What ends the wait.
            remedy: String,
            /// When it is looked at again.
            next_check_at: Option<Time>,
            /// How many objects wait for the same reason.
            count: i64,
        }
    }

    /// Ordered deletion under way.
    pub struct DeletionStatus {
        optional {
            /// `AllAtOnce`, `Reverse` or `Custom`.
            order: String,
            /// The step being deleted, counted from 1 in the order of deletion.
            step: i64,
            /// How many steps there are.
            total_steps: i64,
            /// How many Applications are left.
            remaining: i64,
            /// Applications being deleted now.
            deleting: Vec<String>,
            /// When it began.
            started_at: Option<Time>,
            /// What it waits for.
            blockers: Vec<Blocker>,
        }
    }
}

words! {
    /// How far a run is.
    open enum RolloutState {
        /// Nothing to do.
        Idle = "Idle",
        /// Automatic sync is being switched off.
        Arming = "Arming",
        /// Steps are being worked through.
        Progressing = "Progressing",
        /// Held by a person.
        Paused = "Paused",
        /// Held by a failure.
        Failed = "Failed",
        /// Ended by a person.
        Aborted = "Aborted",
        /// Done.
        Complete = "Complete",
    }

    /// How far a step is.
    open enum StepState {
        /// Not open yet.
        Waiting = "Waiting",
        /// Open.
        Open = "Open",
        /// Done, and watched for its wait.
        Soaking = "Soaking",
        /// Done.
        Complete = "Complete",
        /// Too many of its Applications failed.
        Failed = "Failed",
    }
}
