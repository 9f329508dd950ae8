//! What an operator may set about rendering.

use std::path::PathBuf;
use std::time::Duration;

/// How sources are rendered.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the temporary trees of Kustomize and Helm are made.
    pub work_dir: PathBuf,
    /// The `kustomize` program: a name looked for in `PATH`, or a path. Where none is stated, `kustomize` is looked for,
    /// and `kubectl kustomize` run in its place.
    pub kustomize: Option<PathBuf>,
    /// The `kubectl` program, likewise.
    pub kubectl: PathBuf,
    /// The `helm` program, likewise.
    pub helm: PathBuf,
    /// Whether Kustomize may fetch remote bases and Helm a chart's dependencies, both by https. Tools whose source names
    /// none run without network, where the machine lets us take it away.
    pub remote_references: bool,
    /// Bounds on what one rendering may take.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            work_dir: std::env::temp_dir(),
            kustomize: None,
            kubectl: PathBuf::from("kubectl"),
            helm: PathBuf::from("helm"),
            remote_references: true,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what one rendering may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most bytes the manifests of a plain directory may have together.
    pub manifest_bytes: u64,
    /// Most objects a source may give.
    pub objects: usize,
    /// Most sources an Application may have.
    pub sources: usize,
    /// Most files written out for a tool.
    pub tree_files: usize,
    /// Most bytes written out for a tool, and most that it may write itself.
    pub tree_bytes: u64,
    /// Longest time a tool may take.
    pub tool_time: Duration,
    /// Most bytes a tool may print.
    pub tool_output: usize,
    /// Most tools at once.
    pub tools: usize,
    /// Most bytes of rendered objects kept in memory.
    pub cached_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            manifest_bytes: 10 << 20,
            objects: 50_000,
            sources: 100,
            tree_files: 100_000,
            tree_bytes: 256 << 20,
            tool_time: Duration::from_secs(90),
            tool_output: 64 << 20,
            tools: 4,
            cached_bytes: 256 << 20,
        }
    }
}
