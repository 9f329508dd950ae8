//! The health of one object, and which of two is worse.

use crate::application_status::HealthCode;

/// How one object fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// In one word.
    pub code: HealthCode,
    /// In words; often empty.
    pub message: String,
}

impl Health {
    /// A health and why.
    pub fn new(code: HealthCode, message: impl Into<String>) -> Health {
        Health { code, message: message.into() }
    }
}

/// How bad a code is, from 0 (Healthy) up. A code that is none of Argo CD's is as bad as Unknown.
pub fn severity(code: &HealthCode) -> u8 {
    match code {
        HealthCode::Healthy => 0,
        HealthCode::Suspended => 1,
        HealthCode::Progressing => 2,
        HealthCode::Missing => 3,
        HealthCode::Degraded => 4,
        HealthCode::Unknown | HealthCode::Other(_) => 5,
    }
}
