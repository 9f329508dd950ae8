//! Which programs may be run.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::outcome::{Fault, Reason};

/// Names that are refused outright. This is no boundary (a directory and a sandbox are): it tells an author early
/// that a shell or a deletion is not what hooks are for.
const DANGEROUS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "chmod",
    "chown",
    "chroot",
    "crontab",
    "csh",
    "curl",
    "dash",
    "dd",
    "doas",
    "docker",
    "eval",
    "exec",
    "fdisk",
    "fish",
    "halt",
    "init",
    "insmod",
    "iptables",
    "kill",
    "killall",
    "ksh",
    "mkfs",
    "modprobe",
    "mount",
    "nc",
    "ncat",
    "netcat",
    "nsenter",
    "passwd",
    "pkill",
    "poweroff",
    "reboot",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "sh",
    "shred",
    "shutdown",
    "socat",
    "ssh",
    "su",
    "sudo",
    "systemctl",
    "tcsh",
    "telnet",
    "umount",
    "unshare",
    "useradd",
    "wget",
    "zsh",
];

/// Why a command cannot name its program so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadProgram {
    #[error("the program is missing")]
    Missing,
    #[error(
        "the program must be written out, not by a template: what runs is decided when the set is written"
    )]
    Template,
    #[error("the program holds a character that no name has")]
    Character,
    #[error(
        "an absolute path is not allowed; put the program into the operator's hooks directory and name it \
         as ./NAME"
    )]
    Absolute,
    #[error("\"..\" is not allowed: programs lie in the operator's hooks directory")]
    Parent,
    #[error("a path must begin with \"./\", which is the operator's hooks directory")]
    Bare,
    #[error(
        "{0:?} is refused as a dangerous command; put a program that does just what is needed into the \
         operator's hooks directory"
    )]
    Dangerous(String),
}

/// A program that was found.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// The operator's directory, links followed.
    pub(super) directory: PathBuf,
}

/// Looks at a program's name, without looking for it: a bare name, or a path that begins with `./`.
pub(crate) fn named(program: &str) -> Result<(), BadProgram> {
    if program.is_empty() {
        return Err(BadProgram::Missing);
    }
    if program.contains("{{") {
        return Err(BadProgram::Template);
    }
    // A space or a quote is a command line that was meant for a shell.
    let odd = |char: char| char.is_control() || char.is_whitespace() || "\\\"'`$;&|<>*?~#!".contains(char);
    if program.contains(odd) {
        return Err(BadProgram::Character);
    }
    if program.starts_with('/') {
        return Err(BadProgram::Absolute);
    }
    if program.split('/').any(|part| part == "..") {
        return Err(BadProgram::Parent);
    }
    if program.contains('/') && !program.starts_with("./") {
        return Err(BadProgram::Bare);
    }
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    if name.is_empty() || name == "." {
        return Err(BadProgram::Missing);
    }
    let stem = name.split('.').next().unwrap_or(&name);
    if DANGEROUS.contains(&name.as_str()) || stem == "mkfs" {
        return Err(BadProgram::Dangerous(name));
    }
    Ok(())
}

/// Finds the program in the operator's directory.
pub(super) fn find(directory: Option<&Path>, program: &str) -> Result<Program, Fault> {
    let refuse = |message: String| Fault::new(Reason::ProgramNotAllowed, message);
    let Some(directory) = directory else {
        return Err(refuse(
            "there is no directory for commands; the operator sets it with --hooks-dir".to_owned(),
        ));
    };
    named(program).map_err(|bad| refuse(bad.to_string()))?;
    let directory = directory
        .canonicalize()
        .map_err(|fault| refuse(format!("the directory for commands cannot be used: {fault}")))?;
    let found = directory.join(program).canonicalize();
    let path = found
        .map_err(|fault| refuse(format!("{program:?} is not in the directory for commands: {fault}")))?;
    let inside = path.strip_prefix(&directory).is_ok_and(|rest| {
        rest.components().next().is_some()
            && rest.components().all(|part| matches!(part, Component::Normal(_)))
    });
    if !inside {
        return Err(refuse(format!("{program:?} leads out of the directory for commands")));
    }
    // A link may give a refused program another name; the name it leads to counts too.
    let real = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Err(bad @ BadProgram::Dangerous(_)) = named(&real) {
        return Err(refuse(bad.to_string()));
    }
    let executable =
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if !executable {
        return Err(refuse(format!("{program:?} is no executable file")));
    }
    if !names_its_interpreter(&path) {
        let message =
            format!("{program:?} is no program: a script begins with #! and the path of its interpreter");
        return Err(refuse(message));
    }
    Ok(Program { path, directory })
}

/// Whether the kernel itself can run a file. What it cannot, the C library hands to a shell, and there are no shells here.
fn names_its_interpreter(path: &Path) -> bool {
    let mut begin = [0; 4];
    let Ok(read) = File::open(path).and_then(|mut file| file.read(&mut begin)) else {
        // What cannot be read can still be a program, but no shell can read it either.
        return true;
    };
    begin[..read].starts_with(b"#!") || begin[..read] == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_program_may_be_called() {
        for good in
            ["kubectl", "./scripts/validate.sh", "./a", "pytest-3", "./x/y/z", "rm-nothing", "./shellcheck"]
        {
            assert_eq!(named(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("", BadProgram::Missing),
            ("./", BadProgram::Missing),
            ("./.", BadProgram::Missing),
            ("{{name}}", BadProgram::Template),
            ("a b", BadProgram::Character),
            ("a\0b", BadProgram::Character),
            ("$(id)", BadProgram::Character),
            ("~/x", BadProgram::Character),
            ("/bin/true", BadProgram::Absolute),
            ("../x", BadProgram::Parent),
            ("./a/../../x", BadProgram::Parent),
            ("scripts/x", BadProgram::Bare),
            ("rm", BadProgram::Dangerous("rm".into())),
            ("./RM", BadProgram::Dangerous("rm".into())),
            ("./tools/sudo", BadProgram::Dangerous("sudo".into())),
            ("mkfs.ext4", BadProgram::Dangerous("mkfs.ext4".into())),
        ] {
            assert_eq!(named(bad), Err(expected), "{bad}");
        }
    }

    #[test]
    fn a_program_lies_in_the_directory_links_followed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("hooks");
        fs::create_dir_all(directory.join("scripts")).expect("a directory");
        let executable = |path: &Path| {
            fs::write(path, "#!/bin/true\n").expect("a file");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
        };
        executable(&directory.join("good"));
        executable(&directory.join("scripts/good"));
        executable(&place.path().join("outside"));
        executable(&directory.join("bash"));
        fs::write(directory.join("plain"), "").expect("a file");
        fs::write(directory.join("bare"), "echo hello\n").expect("a file");
        fs::set_permissions(directory.join("bare"), fs::Permissions::from_mode(0o755)).expect("its mode");
        symlink("good", directory.join("link")).expect("a link");
        symlink("../outside", directory.join("way-out")).expect("a link");
        symlink("bash", directory.join("friendly")).expect("a link");
        let find = |program: &str| find(Some(&directory), program);
        for good in ["good", "./good", "./scripts/good", "link"] {
            assert!(find(good).is_ok(), "{good}");
        }
        for (bad, message) in [
            ("way-out", "\"way-out\" leads out of the directory for commands"),
            ("plain", "\"plain\" is no executable file"),
            ("bare", "\"bare\" is no program: a script begins with #! and the path of its interpreter"),
            ("./scripts", "\"./scripts\" is no executable file"),
            (
                "friendly",
                "\"bash\" is refused as a dangerous command; put a program that does just what is needed \
                 into the operator's hooks directory",
            ),
            ("none", "\"none\" is not in the directory for commands: No such file or directory (os error 2)"),
        ] {
            let fault = find(bad).err().map(|fault| (fault.reason, fault.message));
            assert_eq!(fault, Some((Reason::ProgramNotAllowed, message.to_owned())), "{bad}");
        }
    }
}
