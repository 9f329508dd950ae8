//! What goes wrong with a cluster.

use jiff::Timestamp;

/// Why something could not be learnt from, or done to, a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The cluster cannot be reached or does not let us in.
    #[error("cluster {server:?} cannot be reached since {since}: {reason}")]
    Unreachable {
        /// URL of its API.
        server: String,
        /// Why.
        reason: String,
        /// When this was first noticed.
        since: Timestamp,
    },
    /// Not everything has been read yet.
    #[error("{0}")]
    NotReady(String),
    /// The cluster does not allow it.
    #[error("{0}")]
    Forbidden(String),
    /// The API refused, or failed.
    #[error("{message}")]
    Api {
        /// HTTP status.
        code: u16,
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
    /// There was no answer, or none that could be read.
    #[error("no usable answer from the Kubernetes API: {0}")]
    NoAnswer(String),
}

/// Why a prediction could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// The kind or the namespace is not there.
    #[error("{0}")]
    Missing(String),
    /// The cluster does not allow it.
    #[error("{0}")]
    Forbidden(String),
    /// The API cannot predict this object, for example for a webhook that knows no dry run.
    #[error("{0}")]
    Unsupported(String),
    /// The API would refuse the object.
    #[error("{0}")]
    Invalid(String),
    /// No answer was to be had.
    #[error(transparent)]
    Failed(ClusterError),
}

// === impl ClusterError ===

impl ClusterError {
    /// HTTP status of the API's answer; 0 if there was none.
    pub(crate) fn code(&self) -> u16 {
        match self {
            ClusterError::Api { code, .. } => *code,
            ClusterError::Forbidden(_) => 403,
            _ => 0,
        }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            ClusterError::Api { reason, .. } => reason,
            _ => "",
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    pub(crate) fn is_already_exists(&self) -> bool {
        self.code() == 409 && self.reason() == "AlreadyExists"
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == 409 && self.reason() != "AlreadyExists"
    }

    /// Whether a write may have taken effect nevertheless.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            ClusterError::Api { code, .. } => *code >= 500,
            ClusterError::NoAnswer(_) => true,
            _ => false,
        }
    }

    /// Whether it says more about the connection than about the request.
    pub(crate) fn is_connection(&self) -> bool {
        match self {
            ClusterError::NoAnswer(_) | ClusterError::Unreachable { .. } => true,
            ClusterError::Api { code, .. } => matches!(code, 401 | 500..),
            _ => false,
        }
    }
}

impl From<ClusterError> for PredictError {
    fn from(error: ClusterError) -> PredictError {
        let text = error.to_string();
        match &error {
            ClusterError::Forbidden(_) => PredictError::Forbidden(text),
            ClusterError::Api { code: 404, .. } => PredictError::Missing(text),
            ClusterError::Api { code: 405 | 415, .. } => PredictError::Unsupported(text),
            ClusterError::Api { code: 400, .. } if text.contains("dry run") => {
                PredictError::Unsupported(text)
            }
            ClusterError::Api { code: 400 | 409 | 413 | 422, .. } => PredictError::Invalid(text),
            _ => PredictError::Failed(error),
        }
    }
}
