//! Why parameters could not be generated.

use crate::reads::Reads;

/// What failed, and in which generator. There is no partial result beside it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{fault}")]
pub struct GeneratorError {
    fault: Fault,
    reads: Box<Reads>,
}

impl GeneratorError {
    pub(crate) fn new(fault: Fault, reads: Reads) -> GeneratorError {
        GeneratorError { fault, reads: Box::new(reads) }
    }

    /// Field path of the generator that failed, such as `spec.generators[0].matrix.generators[1].git`.
    pub fn place(&self) -> &str {
        &self.fault.place
    }

    /// What failed, without the place.
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// What was read before, and while, it failed: a change there may mend it.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }
}

/// A failure inside one pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub(crate) struct Fault {
    pub(crate) place: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn at(place: &str, message: impl Into<String>) -> Fault {
        Fault { place: place.to_owned(), message: message.into() }
    }
}
