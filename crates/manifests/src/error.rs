//! Why a source gives no objects, in the words its owner reads.

use baton_source::SourceError;

/// Why the sources of an Application could not be rendered.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to generate manifest for source {place} of {count}: {fault}")]
pub struct ManifestError {
    /// Which source, from 1.
    pub place: usize,
    /// How many sources there are.
    pub count: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

impl ManifestError {
    /// Whether asking again later, with nothing changed, may give another answer.
    pub fn is_transient(&self) -> bool {
        match &self.fault {
            Fault::Repository(error) => error.is_transient(),
            Fault::Machine(_) => true,
            _ => false,
        }
    }
}

/// What is wrong with one source.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// Its repository, or a file of it, cannot be read.
    #[error(transparent)]
    Repository(#[from] SourceError),
    /// Its path leads to no directory.
    #[error("{path}: app path {why}")]
    Path {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Its options contradict themselves or cannot be used.
    #[error("{0}")]
    Options(String),
    /// A file of overrides cannot be used.
    #[error("error while parsing source parameters: {file}: {why}")]
    Overrides {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// A link leads where it may not.
    #[error("invalid manifest file {path:?}: {why}")]
    Link {
        /// The link.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A manifest cannot be read.
    #[error("Failed to unmarshal {file:?}: {why}")]
    Manifest {
        /// The file, or the tool whose output it is.
        file: String,
        /// What is wrong with it; never its content.
        why: String,
    },
    /// It is over a limit.
    #[error("{0}")]
    Limit(String),
    /// It needs what is not supported here.
    #[error("{0}")]
    Unsupported(String),
    /// The tool it needs is not installed.
    #[error("{program} is needed to render this source and cannot be run: {why}. {remedy}")]
    Missing {
        /// The program.
        program: String,
        /// What the system said.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The tool ended with an error.
    #[error("`{command}` failed: {complaint}")]
    Tool {
        /// The command, paths shortened.
        command: String,
        /// What it complained about.
        complaint: String,
    },
    /// This machine's part failed.
    #[error("{0}")]
    Machine(String),
}
