//! What an operator decides about hooks.

use std::path::PathBuf;

use crate::http::{AllowList, Places};
use crate::limits::Limits;
use crate::sandbox::Support;

/// What an operator decides about hooks and checks. Nothing an ApplicationSet says goes beyond it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Hosts and networks that may be called although they lead inward (`--hooks-allow`).
    pub allow: AllowList,
    /// Whether `http://` may be called (`--hooks-allow-http`).
    pub allow_http: bool,
    /// Whether `insecureSkipVerify` counts (`--hooks-allow-insecure-tls`).
    pub allow_insecure_tls: bool,
    /// PEM file of authorities to trust beside the machine's (`--hooks-ca`).
    pub authorities: Option<PathBuf>,
    /// Where hosts are, instead of what DNS says (`--hooks-resolve`).
    pub places: Places,
    /// The only directory commands come from (`--hooks-dir`); without it there are none.
    pub directory: Option<PathBuf>,
    /// Files and directories that commands may read besides (`--hooks-read`).
    pub read: Vec<PathBuf>,
    /// Whether commands run where the kernel cannot hold them (`--hooks-allow-unsandboxed`).
    pub allow_unsandboxed: bool,
    /// Whether commands may use the network. The operator chose the programs, and most of what a phase wants to know
    /// is elsewhere, so they may unless it is taken from them.
    pub command_network: bool,
    /// Where commands' temporary directories are made; the machine's place for them if not said.
    pub scratch: Option<PathBuf>,
    /// User and group that commands run as when this process is root. Never root: its processes are not counted, and
    /// it owns what is to be protected.
    pub command_user: (u32, u32),
    /// Limits; the proposal's numbers are the most.
    pub limits: Limits,
    /// A program whose `main` begins with [`crate::sandbox::enter_if_asked`]: the link to this very one, which leads
    /// there even if its file was replaced or deleted since it started.
    pub entry: PathBuf,
    /// What the kernel can do.
    pub support: Support,
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            allow: AllowList::default(),
            allow_http: false,
            allow_insecure_tls: false,
            authorities: None,
            places: Places::default(),
            directory: None,
            read: Vec::new(),
            allow_unsandboxed: false,
            command_network: true,
            scratch: None,
            command_user: (65_534, 65_534),
            limits: Limits::default(),
            entry: PathBuf::from("/proc/self/exe"),
            support: Support::detect(),
        }
    }
}
