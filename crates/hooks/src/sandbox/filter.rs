//! Which system calls a command has: seccomp filters.
//!
//! What is refused are calls that reach other processes, the kernel or the machine; that change files by name past
//! Landlock, which does not know modes, owners and attributes; and that hold memory or files no limit counts.
//! Everything else is allowed: an operator's program must run without being listed call by call.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// What the filter must know.
pub(super) struct Filter<'a> {
    /// Whether sockets may be made.
    pub(super) network: bool,
    /// Whether Landlock keeps signals inside.
    pub(super) scopes: bool,
    /// Processes that must not be signalled, whatever Landlock can do.
    pub(super) protected: &'a [i32],
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Never allowed; the caller is told so.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_perf_event_open,
    // The kernel and its keys.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_syslog,
    // File systems and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Modes, owners and attributes of files by name; by an open file they can only be of what Landlock let in.
    // Truncation by name is known to Landlock only since its third version.
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_truncate,
    // Memory that outlives or is not counted to a process.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Said not to exist: programs then do it in an older way, which can be judged. `clone3` hides its flags in memory,
/// `io_uring` does calls no filter sees, memory files are counted to nobody. The numbers are the same on every
/// architecture.
const UNKNOWN: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_create,
    libc::SYS_pidfd_open,
    // memfd_secret, fchmodat2, setxattrat, removexattrat, open_tree_attr, file_setattr
    447,
    452,
    463,
    466,
    467,
    469,
];

/// Flags of `clone` that make namespaces: time is the signal's bit and only of `clone3`.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests to a terminal that type into it.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Whether filters can be put up, on this kernel and this architecture.
pub(super) fn is_supported() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    architecture().is_ok() && status.lines().any(|line| line.starts_with("Seccomp:"))
}

/// Filters the calls of this process and of all it becomes and starts. Also takes from it the way to new privileges.
pub(super) fn put_up(filter: &Filter<'_>) -> Result<(), String> {
    let refused = program(rules(filter)?, libc::EPERM)?;
    let unknown = program(always(UNKNOWN), libc::ENOSYS)?;
    let foreign = foreign_numbers();
    for program in [foreign, unknown, refused] {
        seccompiler::apply_filter(&program).map_err(|fault| format!("seccomp: {fault}"))?;
    }
    Ok(())
}

fn architecture() -> Result<TargetArch, String> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|fault| format!("seccomp: {fault}"))
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture()?);
    filter.and_then(BpfProgram::try_from).map_err(|fault| format!("seccomp: {fault}"))
}

/// Ends a process that uses system call numbers of another table (x32 on x86_64), in which the refused calls have
/// other numbers. Four instructions: load the number, compare, allow, kill.
fn foreign_numbers() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let statement = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    vec![
        statement(LOAD_WORD, 0),
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 1, jf: 0, k: X32 },
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
        statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}

fn always(calls: &[c_long]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn rules(filter: &Filter<'_>) -> Result<Rules, String> {
    let mut rules = always(REFUSED);
    rules.extend(always(REFUSED_HERE));
    let equal = |argument: u8, value: u64| condition(argument, SeccompCmpOp::Eq, value);
    let other = |argument: u8, value: u64| condition(argument, SeccompCmpOp::Ne, value);

    // Only what reaches the network by IP: sockets with a path lead to the machine's own services.
    if filter.network {
        let families = [libc::AF_INET, libc::AF_INET6].map(|family| other(0, word(family)));
        let families = families.into_iter().collect::<Result<Vec<_>, _>>()?;
        rules.insert(libc::SYS_socket, vec![rule(families)?]);
    } else {
        rules.insert(libc::SYS_socket, Vec::new());
    }
    let mut flags = Vec::new();
    for flag in NAMESPACES {
        let bits = u64::from(flag.unsigned_abs());
        flags.push(rule(vec![condition(0, SeccompCmpOp::MaskedEq(bits), bits)?])?);
    }
    rules.insert(libc::SYS_clone, flags);
    // Limits are its own business; others' are not.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![other(0, 0)?])?]);
    // A process that cannot be looked into cannot be counted either.
    rules.insert(libc::SYS_prctl, vec![rule(vec![equal(0, word(libc::PR_SET_DUMPABLE))?])?]);
    let typing = TYPING.iter().map(|&request| rule(vec![equal(1, request)?]));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);

    let signalled = [word(-1)]
        .into_iter()
        .chain(filter.protected.iter().flat_map(|&process| [word(process), word(process.saturating_neg())]));
    let signalled = signalled.map(|process| rule(vec![equal(0, process)?]));
    let signalled = signalled.collect::<Result<Vec<_>, String>>()?;
    rules.insert(libc::SYS_tgkill, signalled.clone());
    rules.insert(libc::SYS_rt_tgsigqueueinfo, signalled.clone());
    // A thread's number will do for these, and those of protected processes are not known.
    let by_thread = if filter.scopes { signalled } else { Vec::new() };
    for call in [libc::SYS_kill, libc::SYS_tkill, libc::SYS_rt_sigqueueinfo] {
        rules.insert(call, by_thread.clone());
    }
    Ok(rules)
}

/// How the kernel sees a number in the lower half of a register.
fn word(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .map_err(|fault| format!("seccomp: {fault}"))
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|fault| format!("seccomp: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_choices_compiles() {
        for (network, scopes) in [(true, true), (true, false), (false, true), (false, false)] {
            let filter = Filter { network, scopes, protected: &[1, 4711] };
            let rules = rules(&filter).expect("conditions are good");
            program(rules, libc::EPERM).expect("the rules make a program");
        }
        program(always(UNKNOWN), libc::ENOSYS).expect("the rules make a program");
    }
}
