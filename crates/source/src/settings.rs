//! What an operator may set about reading repositories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How repositories are read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where fetched objects are kept. Several processes may share the directory; it is made when missing.
    pub cache_dir: PathBuf,
    /// Repositories read from this machine's disk instead: URL to a working tree or bare repository, of which the
    /// committed state is read, or to any other directory, whose files stand for every revision.
    pub local: BTreeMap<String, PathBuf>,
    /// Whether `file://` URLs and absolute paths may be read without being in `local`.
    pub allow_local: bool,
    /// How long a look at one of `local` takes at least: the simulator's way to have a slow host.
    pub local_delay: Duration,
    /// Bounds on what one repository may take.
    pub limits: Limits,
    /// How long the references of a repository are believed before it is asked again.
    pub revision_cache: Duration,
    /// Whether directories whose name begins with a dot are directories like others.
    pub include_hidden_directories: bool,
    /// Whether the proxy variables of this process are used for repositories whose Secret names no proxy.
    pub inherit_proxy: bool,
    /// The `git` program: a name looked for in `PATH`, or a path.
    pub git: PathBuf,
    /// The `ssh` program, likewise.
    pub ssh: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cache_dir: std::env::temp_dir().join("baton-repositories"),
            local: BTreeMap::new(),
            allow_local: false,
            local_delay: Duration::ZERO,
            limits: Limits::default(),
            revision_cache: Duration::from_secs(180),
            include_hidden_directories: false,
            inherit_proxy: true,
            git: PathBuf::from("git"),
            ssh: PathBuf::from("ssh"),
        }
    }
}

/// Bounds on what one repository may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest time one conversation with a remote may take.
    pub total: Duration,
    /// Longest time a remote may stay silent.
    pub silence: Duration,
    /// Most bytes one repository may take in the cache.
    pub repository_bytes: u64,
    /// Most references a repository may list.
    pub references: usize,
    /// Most entries (files and directories) of one tree.
    pub entries: usize,
    /// Longest path in a tree, in bytes.
    pub path_bytes: usize,
    /// Largest file that is read.
    pub file_bytes: u64,
    /// Most bytes one call of `read` gives back.
    pub read_bytes: u64,
    /// Most `git` processes at once.
    pub processes: usize,
    /// Most repositories kept in the cache directory.
    pub cached_repositories: usize,
    /// Most bytes kept in the cache directory.
    pub cached_bytes: u64,
    /// Most tree entries kept in memory, over all trees.
    pub cached_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            total: Duration::from_secs(600),
            silence: Duration::from_secs(60),
            repository_bytes: 2 << 30,
            references: 500_000,
            entries: 1_000_000,
            path_bytes: 4096,
            file_bytes: 10 << 20,
            read_bytes: 256 << 20,
            processes: 8,
            cached_repositories: 512,
            cached_bytes: 16 << 30,
            cached_entries: 2_000_000,
        }
    }
}
