//! The order in which the Applications of a set change and go.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::wire::{wire, words};

wire! {
    /// The order in which Applications change and go.
    pub struct Strategy {
        optional {
            /// `AllAtOnce`, or `RollingSync` to go step by step.
            #[serde(rename = "type")]
            kind: StrategyType,
            /// The steps of `RollingSync`.
            rolling_sync: Option<RolloutStrategy>,
            /// The order of deletion: `AllAtOnce`, `Reverse` or `Custom`.
            deletion_order: String,
            /// The steps of a `Custom` deletion.
            deletion_sync: Option<DeletionStrategy>,
        }
    }

    /// Steps; the next opens when every Application of the one before is done.
    pub struct RolloutStrategy {
        optional {
            /// The steps, in order.
            steps: Vec<RolloutStep>,
        }
    }

    /// Steps of deletion; the next begins when every Application of the one before is gone.
    pub struct DeletionStrategy {
        optional {
            /// The steps, in order.
            #[schemars(length(max = 100))]
            steps: Vec<RolloutStep>,
        }
    }

    /// One step: the Applications it holds, and how they go.
    pub struct RolloutStep {
        optional {
            /// Labels of the Applications; all must match.
            match_expressions: Vec<MatchExpression>,
            /// How many may change at once, a number or a percentage; 0 holds the step.
            max_update: Option<IntOrString>,
            /// How long the step must stay healthy before the next opens, for example `10m`.
            wait_duration: Option<String>,
            /// How long an Application may take before it counts as failed, for example `30m`.
            progress_deadline: Option<String>,
            /// How many failed Applications, a number or a percentage, do not stop the step.
            max_failures: Option<IntOrString>,
        }
    }

    /// A condition on labels.
    pub struct MatchExpression {
        optional {
            /// The label.
            key: String,
            /// `In` or `NotIn`.
            operator: MatchOperator,
            /// The values.
            values: Vec<String>,
        }
    }
}

words! {
    /// How Applications change.
    open enum StrategyType {
        /// All together.
        AllAtOnce = "AllAtOnce",
        /// Step by step.
        RollingSync = "RollingSync",
    }

    /// How a label is compared.
    open enum MatchOperator {
        /// It has one of the values.
        In = "In",
        /// It has none of the values, or is absent.
        NotIn = "NotIn",
        /// It is present.
        Exists = "Exists",
        /// It is absent.
        DoesNotExist = "DoesNotExist",
    }
}

/// The order in which Applications are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionOrder {
    /// All together.
    AllAtOnce,
    /// The steps of `RollingSync`, last first.
    Reverse,
    /// The steps of `deletionSync`.
    Custom,
}

// === impl Strategy ===

impl Strategy {
    /// The order of deletion, or the word that names none.
    ///
    /// Unset is all at once. Argo CD reads `Reverse` in any case; the other words have no older meaning and are read
    /// alike.
    pub fn deletion_order(&self) -> Result<DeletionOrder, &str> {
        let word = self.deletion_order.as_str();
        let known = [
            ("", DeletionOrder::AllAtOnce),
            ("AllAtOnce", DeletionOrder::AllAtOnce),
            ("Reverse", DeletionOrder::Reverse),
            ("Custom", DeletionOrder::Custom),
        ];
        let found = known.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map(|(_, order)| order).ok_or(word)
    }
}
