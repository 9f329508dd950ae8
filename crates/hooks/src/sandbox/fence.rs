//! Which files a command sees: Landlock.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};

/// The rights known here. What a kernel does not have of them is left out, but not the first version.
const KNOWN: ABI = ABI::V6;

/// Where programs and libraries are: a script needs its interpreter, a program its loader.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"];

/// What programs look up: names, certificates, the time zone. No secret of the machine is among them.
const FACTS: [&str; 20] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
];

const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
const SOURCES: [&str; 2] = ["/dev/random", "/dev/urandom"];

/// What a command may touch.
pub(super) struct Fence<'a> {
    pub(super) directory: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) read: &'a [PathBuf],
    /// Keep signals inside.
    pub(super) scopes: bool,
}

/// Whether the kernel has Landlock and it is switched on.
pub(super) fn is_supported() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Whether it can keep signals inside.
pub(super) fn has_scopes() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// Puts this process, and all it becomes and starts, behind the fence.
pub(super) fn put_up(fence: &Fence<'_>) -> Result<(), String> {
    let broken = |fault: landlock::RulesetError| format!("Landlock: {fault}");
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(KNOWN)).map_err(broken)?;
    if fence.scopes {
        ruleset = ruleset.scope(Scope::from_all(KNOWN)).map_err(broken)?;
    }
    let mut ruleset = ruleset.create().map_err(broken)?;

    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let run = read | AccessFs::Execute;
    let write = AccessFs::WriteFile | AccessFs::Truncate;
    ruleset = allow(ruleset, fence.directory, run)?;
    for path in fence.read {
        ruleset = allow(ruleset, path, read)?;
    }
    // What is written cannot be executed: a command runs what the operator gave it, nothing it made or fetched.
    let make = make_bitflags!(AccessFs::{
        MakeReg | MakeDir | MakeSym | MakeFifo | RemoveFile | RemoveDir | Refer
    });
    ruleset = allow(ruleset, fence.scratch, read | write | make)?;
    for (paths, rights) in [
        (&PROGRAMS[..], run),
        (&FACTS[..], read),
        (&SINKS[..], write | AccessFs::ReadFile),
        (&SOURCES[..], AccessFs::ReadFile.into()),
    ] {
        for path in paths.iter().map(Path::new).filter(|path| path.exists()) {
            ruleset = allow(ruleset, path, rights)?;
        }
    }
    let status = ruleset.restrict_self().map_err(broken)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("Landlock: the kernel does not enforce it".to_owned()),
    }
}

fn allow(ruleset: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, String> {
    let broken = |fault: &dyn std::fmt::Display| format!("{} cannot be allowed: {fault}", path.display());
    // A file has no rights of a directory.
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
    let handle = PathFd::new(path).map_err(|fault| broken(&fault))?;
    ruleset.add_rule(PathBeneath::new(handle, rights)).map_err(|fault| broken(&fault))
}
