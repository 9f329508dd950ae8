//! `generators[].deploymentStrategy`: deploy one generator's Applications phase by phase, with hooks and checks.
//!
//! Every list and text has a bound. The list of generators above has none, and the API server refuses a CRD whose rules
//! might cost too much: a rule here may look at one element's own fields, never walk a list. Names are kept unique by
//! list keys for the same reason.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::{wire, words};

wire! {
    /// How the Applications of one generator are deployed.
    pub struct DeploymentStrategy {
        required {
            /// `phaseDeployment`.
            #[serde(rename = "type")]
            kind: DeploymentStrategyType,
            /// The phases, in order.
            #[schemars(length(min = 1, max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            phases: Vec<Phase>,
        }
        optional {
            /// How many good states of each Application are kept to roll back to.
            #[schemars(range(min = 0, max = 100))]
            revision_history_limit: Option<i64>,
        }
    }

    /// One phase.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "!(has(self.percentage) && has(self.maxUpdate))",
        "message": "percentage and maxUpdate exclude each other",
    }, {
        "rule": "self.name.matches('^[-a-z0-9]*$') && !self.name.startsWith('-') && !self.name.endsWith('-')",
        "message": "name: use lower case letters, digits and dashes, and begin and end with a letter or digit",
    }]))]
    pub struct Phase {
        required {
            /// Name of the phase.
            #[schemars(length(min = 1, max = 40))]
            name: String,
            /// Which targets belong to it; any entry may match.
            #[schemars(length(min = 1, max = 100))]
            targets: Vec<PhaseTarget>,
        }
        optional {
            /// Share of the targets to update, in percent; 0 runs hooks only.
            #[schemars(range(min = 0, max = 100))]
            percentage: Option<i64>,
            /// How many targets to update, a number or a percentage; excludes `percentage`.
            #[schemars(extend("minimum" = 0, "maximum" = 2147483647))]
            max_update: Option<IntOrString>,
            /// How many targets may change at once, a number or a percentage.
            #[schemars(extend("minimum" = 0, "maximum" = 2147483647))]
            max_concurrent: Option<IntOrString>,
            /// Run before anything is deployed.
            #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            pre_hooks: Vec<Hook>,
            /// Run when targets are healthy and checks have passed.
            #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            post_hooks: Vec<Hook>,
            /// Must pass when targets are healthy.
            #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            checks: Vec<Check>,
            /// How long to wait after the phase, for example `5m`.
            #[schemars(schema_with = "crate::crd::duration")]
            wait_duration: Option<String>,
            /// How long a target may take before it counts as failed, for example `30m`.
            #[schemars(schema_with = "crate::crd::duration")]
            progress_deadline: Option<String>,
            /// What to do when the phase fails.
            on_failure: Option<OnFailure>,
        }
    }

    /// Which targets belong to a phase; all given fields must match.
    #[schemars(extend("minProperties" = 1))]
    pub struct PhaseTarget {
        optional {
            /// Names of clusters.
            #[schemars(length(max = 1000))]
            clusters: Vec<String>,
            /// Parameters and their values.
            #[schemars(extend("maxProperties" = 100))]
            values: BTreeMap<String, String>,
            /// Conditions on parameters and cluster labels.
            #[schemars(length(max = 50))]
            match_expressions: Vec<TargetExpression>,
        }
    }

    /// A condition on a parameter or a cluster label.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "message": "In and NotIn need values, Exists and DoesNotExist take none",
    }]))]
    pub struct TargetExpression {
        required {
            /// The parameter or label.
            #[schemars(length(min = 1, max = 317))]
            key: String,
            /// How it is compared.
            operator: TargetOperator,
        }
        optional {
            /// The values, for `In` and `NotIn`.
            #[schemars(length(max = 1000))]
            values: Vec<String>,
        }
    }

    /// What to do when a phase fails.
    pub struct OnFailure {
        optional {
            /// The action; `stop` when unset.
            action: FailureAction,
        }
    }

    /// An HTTP call or a command, run before or after a phase.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.http) == (self.type == 'http') && has(self.command) == (self.type == 'command')",
        "message": "type http needs the field http and excludes command, type command the reverse",
    }]))]
    pub struct Hook {
        required {
            /// Name of the hook.
            #[schemars(length(min = 1, max = 63))]
            name: String,
            /// `http` or `command`.
            #[serde(rename = "type")]
            kind: HookType,
        }
        optional {
            /// How long one attempt may take; 5 minutes when unset.
            #[schemars(schema_with = "crate::crd::duration")]
            timeout: Option<String>,
            /// What a failure means; `fail` when unset.
            failure_policy: FailurePolicy,
            /// The call, for type `http`.
            http: Option<HttpCall>,
            /// The command, for type `command`.
            command: Option<CommandCall>,
            /// Try again until a deadline.
            retry: Option<HookRetry>,
            /// Run beside the neighbouring hooks that say the same.
            parallel: bool,
            /// Run once for the phase or once for each target; found from its text when unset.
            scope: HookScope,
            /// Secrets that its text may use.
            #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            secret_refs: Vec<HookSecretRef>,
        }
    }

    /// An HTTP call or a command that must pass before a phase is done; repeated until it does or time is up.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.http) == (self.type == 'http') && has(self.command) == (self.type == 'command')",
        "message": "type http needs the field http and excludes command, type command the reverse",
    }]))]
    pub struct Check {
        required {
            /// Name of the check.
            #[schemars(length(min = 1, max = 63))]
            name: String,
            /// `http` or `command`.
            #[serde(rename = "type")]
            kind: HookType,
        }
        optional {
            /// How long it may take to pass; 5 minutes when unset.
            #[schemars(schema_with = "crate::crd::duration")]
            timeout: Option<String>,
            /// The call, for type `http`.
            http: Option<HttpCall>,
            /// The command, for type `command`.
            command: Option<CommandCall>,
            /// Run once for the phase or once for each target; found from its text when unset.
            scope: HookScope,
            /// Secrets that its text may use.
            #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            secret_refs: Vec<HookSecretRef>,
        }
    }

    /// An HTTP call.
    pub struct HttpCall {
        required {
            /// URL to call.
            #[schemars(length(min = 1, max = 2048))]
            url: String,
        }
        optional {
            /// Method; `POST` for hooks and `GET` for checks when unset.
            method: HttpMethod,
            /// Headers.
            #[schemars(extend("maxProperties" = 50))]
            headers: BTreeMap<String, String>,
            /// Body.
            #[schemars(length(max = 262144))]
            body: String,
            /// Status, or list of statuses, that counts as success; 200 when unset.
            expected_status: Option<ExpectedStatus>,
            /// Do not verify TLS.
            insecure_skip_verify: bool,
        }
    }

    /// A command.
    pub struct CommandCall {
        required {
            /// Program and arguments; no shell reads them.
            #[schemars(length(min = 1, max = 100))]
            command: Vec<String>,
        }
        optional {
            /// Environment variables.
            #[schemars(extend("maxProperties" = 100))]
            env: BTreeMap<String, String>,
        }
    }

    /// Attempts at a hook until a deadline.
    pub struct HookRetry {
        required {
            /// Pause between attempts.
            #[schemars(schema_with = "crate::crd::duration")]
            interval: String,
            /// When to give up, counted from the first attempt; at most 72 hours.
            #[schemars(schema_with = "crate::crd::duration")]
            deadline: String,
        }
    }

    /// A Secret beside the application set that a hook's text may use.
    pub struct HookSecretRef {
        required {
            /// Name by which the text refers to it, as in `{{.secrets.<name>.<key>}}`.
            #[schemars(length(min = 1, max = 253))]
            name: String,
        }
        optional {
            /// Name of the Secret; the same as `name` when unset.
            #[schemars(length(max = 253))]
            secret_name: String,
            /// Keys that may be used; all when unset.
            #[schemars(length(min = 1, max = 50))]
            keys: Option<Vec<String>>,
        }
    }
}

words! {
    /// How the Applications of a generator are deployed.
    closed enum DeploymentStrategyType {
        /// Phase by phase.
        PhaseDeployment = "phaseDeployment",
    }

    /// What to do when a phase fails.
    closed enum FailureAction {
        /// Leave what is deployed and wait for a person.
        Stop = "stop",
        /// Put back what the phase changed.
        Rollback = "rollback",
        /// Record it and go on.
        Continue = "continue",
        /// Stop, and end running hooks and syncs.
        Abort = "abort",
    }

    /// What a failed hook means.
    closed enum FailurePolicy {
        /// The phase has failed.
        Fail = "fail",
        /// Nothing.
        Ignore = "ignore",
        /// The phase is aborted.
        Abort = "abort",
    }

    /// What a hook or a check runs.
    closed enum HookType {
        /// An HTTP call.
        Http = "http",
        /// A command.
        Command = "command",
    }

    /// How often a hook or a check runs.
    closed enum HookScope {
        /// Once.
        Phase = "phase",
        /// Once for each target.
        Target = "target",
    }

    /// How a parameter or a label is compared.
    closed enum TargetOperator {
        /// It has one of the values.
        In = "In",
        /// It has none of the values, or is absent.
        NotIn = "NotIn",
        /// It is present.
        Exists = "Exists",
        /// It is absent.
        DoesNotExist = "DoesNotExist",
    }

    /// An HTTP method.
    closed enum HttpMethod {
        /// GET.
        Get = "GET",
        /// HEAD.
        Head = "HEAD",
        /// POST.
        Post = "POST",
        /// PUT.
        Put = "PUT",
        /// PATCH.
        Patch = "PATCH",
        /// DELETE.
        Delete = "DELETE",
        /// OPTIONS.
        Options = "OPTIONS",
    }
}

/// Which HTTP statuses count as success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpectedStatus {
    /// Exactly this one.
    One(i64),
    /// Any of these.
    AnyOf(Vec<i64>),
    /// Something else that the schema could not refuse; accepts nothing, and the controller reports it.
    Other(Value),
}

// === impl ExpectedStatus ===

impl ExpectedStatus {
    /// Whether a status counts as success.
    pub fn accepts(&self, status: u16) -> bool {
        match self {
            ExpectedStatus::One(expected) => *expected == i64::from(status),
            ExpectedStatus::AnyOf(expected) => expected.contains(&i64::from(status)),
            ExpectedStatus::Other(_) => false,
        }
    }
}

impl schemars::JsonSchema for ExpectedStatus {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExpectedStatus".into()
    }

    /// A structural schema has no "number or list of numbers"; each bound here holds for one JSON type only, and
    /// those for strings and objects leave them nothing of use. That for strings is what a person reads who wrote one.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "x-kubernetes-preserve-unknown-fields": true,
            "minimum": 200,
            "maximum": 599,
            "minItems": 1,
            "maxItems": 20,
            "pattern": "^a number without quotes, such as 200$",
            "maxProperties": 0,
        })
    }
}
