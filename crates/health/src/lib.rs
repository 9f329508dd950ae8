//! The health of one live object, and the actions it offers.
//!
//! Health comes from the first that speaks: deletion, a customization written in Lua, a rule of [`rules`]. Actions come
//! from customizations, and for Kubernetes' own workloads from here. Scripts are hostile: they run without files, environment or network, in bounded time
//! and memory.

mod actions;
mod customizations;
mod rules;
mod script;

use baton_api::{application_status::HealthCode, health::Health, names::resource, object::Object};
use jiff::Timestamp;
use serde_json::Value;

pub use actions::{ActionInfo, ActionParam, Change, actions, actions_at, run_action, run_action_at};
pub use customizations::{CustomizationError, Customizations};
pub use script::ScriptError;

/// Why the health of an object, or what its actions do, could not be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthError {
    /// A rule knows the kind, but not in this version.
    #[error("unsupported {name} GVK: {group_version}, Kind={kind}")]
    UnsupportedVersion {
        /// How Argo CD calls the kind.
        name: &'static str,
        /// Group and version of the object.
        group_version: String,
        /// Kind of the object.
        kind: String,
    },
    /// An annotation that holds JSON does not.
    #[error("failed to convert conditions annotation to typed: {0}")]
    Annotation(String),
    /// A script could not be run to its end, or returned what cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// What was told to an action makes no sense.
    #[error("the parameter {name} is to be {what}")]
    Parameter {
        /// The parameter.
        name: String,
        /// What it is to be.
        what: &'static str,
    },
    /// Nothing defines the action for this kind.
    #[error("there is no action {name:?} for {key}")]
    UnknownAction {
        /// The action asked for.
        name: String,
        /// Group and kind of the object.
        key: String,
    },
    /// The actions of a kind cannot be read.
    #[error("cannot read the actions of this kind: {0}")]
    Actions(String),
    /// A script returned an operation that is none.
    #[error("unsupported operation: {0}")]
    UnsupportedOperation(String),
    /// A script returned a list of changes in which one is not well formed.
    #[error("the script returned a change that is no map with a resource")]
    MalformedChange,
}

/// The health of an object; `None` where nothing is known of its kind, or a script says nothing.
///
/// # Errors
/// The object counts as `Unknown`, with the error as message.
pub fn assess(object: &Value, customizations: &Customizations) -> Result<Option<Health>, HealthError> {
    assess_at(object, customizations, Timestamp::now())
}

/// [`assess`] at a given time, which scripts may ask for.
///
/// # Errors
/// As [`assess`].
pub fn assess_at(
    object: &Value,
    customizations: &Customizations,
    now: Timestamp,
) -> Result<Option<Health>, HealthError> {
    // A hook that is being deleted is held by its finalizer until its outcome is known.
    if object.deletion_timestamp().is_some() && !object.finalizers().contains(&resource::HOOK_FINALIZER) {
        return Ok(Some(Health::new(HealthCode::Progressing, "Pending deletion")));
    }
    customized_at(object, customizations, now).unwrap_or_else(|| rules::assess(object))
}

/// What a customization alone says of an object, also of one that is being deleted; `None` where there is none for
/// its kind. This is how scripts are tested.
pub fn customized(
    object: &Value,
    customizations: &Customizations,
) -> Option<Result<Option<Health>, HealthError>> {
    customized_at(object, customizations, Timestamp::now())
}

/// [`customized`] at a given time, which scripts may ask for.
pub fn customized_at(
    object: &Value,
    customizations: &Customizations,
    now: Timestamp,
) -> Option<Result<Option<Health>, HealthError>> {
    let script = customizations.health(object.group(), object.kind())?;
    Some(script::health(script, object, now).map_err(HealthError::from))
}
