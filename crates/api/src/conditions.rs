//! Types and reasons of conditions.

/// Condition types of an Application. The ending `Error`, `Warning` or `Info` is part of the meaning.
pub mod application {
    /// The application could not be deleted.
    pub const DELETION_ERROR: &str = "DeletionError";
    /// The spec is wrong or not permitted.
    pub const INVALID_SPEC_ERROR: &str = "InvalidSpecError";
    /// Source and cluster could not be compared.
    pub const COMPARISON_ERROR: &str = "ComparisonError";
    /// An automatic sync failed.
    pub const SYNC_ERROR: &str = "SyncError";
    /// Anything else.
    pub const UNKNOWN_ERROR: &str = "UnknownError";
    /// A resource belongs to another application as well.
    pub const SHARED_RESOURCE_WARNING: &str = "SharedResourceWarning";
    /// A resource stands in the source more than once.
    pub const REPEATED_RESOURCE_WARNING: &str = "RepeatedResourceWarning";
    /// A resource is excluded by the operator's settings.
    pub const EXCLUDED_RESOURCE_WARNING: &str = "ExcludedResourceWarning";
    /// The namespace holds resources of no application.
    pub const ORPHANED_RESOURCE_WARNING: &str = "OrphanedResourceWarning";
    /// A deletion waits for approval. Baton's own.
    pub const DELETION_APPROVAL_REQUIRED_INFO: &str = "DeletionApprovalRequiredInfo";
    /// A deletion waits for something else. Baton's own.
    pub const DELETION_WAITING_INFO: &str = "DeletionWaitingInfo";
}

/// Condition types of an ApplicationSet.
pub mod application_set {
    /// Something went wrong.
    pub const ERROR_OCCURRED: &str = "ErrorOccurred";
    /// Whether generators worked.
    pub const PARAMETERS_GENERATED: &str = "ParametersGenerated";
    /// Whether every Application is as the set wants it.
    pub const RESOURCES_UP_TO_DATE: &str = "ResourcesUpToDate";
    /// Whether a rollout is under way.
    pub const ROLLOUT_PROGRESSING: &str = "RolloutProgressing";
    /// Whether the steps or the deletion order make no sense.
    pub const INVALID_ROLLOUT_CONFIG: &str = "InvalidRolloutConfig";
    /// Whether Applications are being deleted in an order. Baton's own.
    pub const DELETION_PROGRESSING: &str = "DeletionProgressing";
    /// Whether a mass deletion waits for approval. Baton's own.
    pub const DELETION_HELD: &str = "DeletionHeld";
    /// Whether a phased deployment makes no sense. Baton's own.
    pub const INVALID_PHASE_CONFIG: &str = "InvalidPhaseConfig";
}

/// Reasons in the conditions of an ApplicationSet.
pub mod reason {
    /// Something went wrong.
    pub const ERROR_OCCURRED: &str = "ErrorOccurred";
    /// Every Application is as the set wants it.
    pub const UP_TO_DATE: &str = "ApplicationSetUpToDate";
    /// Generators worked.
    pub const PARAMETERS_GENERATED: &str = "ParametersGenerated";
    /// A generator failed.
    pub const APPLICATION_PARAMS_GENERATION_ERROR: &str = "ApplicationGenerationFromParamsError";
    /// The template or its patch could not be rendered.
    pub const RENDER_TEMPLATE_PARAMS_ERROR: &str = "RenderTemplateParamsError";
    /// A rendered Application is not valid.
    pub const APPLICATION_VALIDATION_ERROR: &str = "ApplicationValidationError";
    /// An Application could not be created.
    pub const CREATE_APPLICATION_ERROR: &str = "CreateApplicationError";
    /// An Application could not be updated.
    pub const UPDATE_APPLICATION_ERROR: &str = "UpdateApplicationError";
    /// An Application could not be deleted.
    pub const DELETE_APPLICATION_ERROR: &str = "DeleteApplicationError";
    /// An Application could not be refreshed.
    pub const REFRESH_APPLICATION_ERROR: &str = "RefreshApplicationError";
    /// A rollout began.
    pub const MODIFIED: &str = "ApplicationSetModified";
    /// A rollout ended.
    pub const ROLLOUT_COMPLETE: &str = "ApplicationSetRolloutComplete";
    /// A rollout has no steps.
    pub const ROLLOUT_ERROR: &str = "ApplicationSetRolloutError";
    /// The steps or the deletion order make no sense.
    pub const INVALID_ROLLOUT_CONFIG: &str = "ApplicationSetInvalidRolloutConfig";
    /// Applications go in their order.
    pub const ORDERED_DELETION: &str = "OrderedDeletion";
    /// An Application takes long to go.
    pub const APPLICATION_STUCK: &str = "ApplicationStuck";
    /// The fuse against mass deletion holds.
    pub const DELETION_FUSE: &str = "DeletionFuse";
    /// The steps and the deletion order make sense.
    pub const VALID_ROLLOUT_CONFIG: &str = "ApplicationSetValidRolloutConfig";
}
