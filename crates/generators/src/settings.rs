//! What an operator decides about generators.

use std::time::Duration;

/// Settings of all generators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Namespace that holds cluster Secrets, projects, and the ConfigMaps generators refer to.
    pub argocd_namespace: String,
    /// Match files of the git generator as doublestar does, where `*` stays within a directory.
    pub new_git_file_globbing: bool,
    /// How often git and clusterDecisionResource generators look again when they do not say.
    pub default_requeue: Duration,
    /// How much one ApplicationSet may produce.
    pub limits: Limits,
}

/// How much one ApplicationSet may produce. Reaching a limit is an error, never a shorter result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Parameter sets, counting those that a matrix or merge combines.
    pub sets: usize,
    /// Bytes of keys and values of all of them.
    pub bytes: usize,
    /// Bytes of a plugin's answer.
    pub answer: usize,
    /// Generators that run at the same time for one matrix.
    pub parallel: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            argocd_namespace: "argocd".to_owned(),
            new_git_file_globbing: false,
            default_requeue: Duration::from_secs(180),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sets: 100_000, bytes: 512 << 20, answer: 16 << 20, parallel: 8 }
    }
}
