//! The kernel's limits of a process.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::CommandLimits;

/// Programs reserve far more address space than they use; this is for what escapes the limit of data, shared memory
/// above all.
const ADDRESS_SPACE: u64 = 8;

/// Limits this process and those it starts. `tasks` is how many its user may have.
pub(super) fn limit(limits: &CommandLimits, tasks: u64) -> Result<(), String> {
    for (name, resource, most) in [
        ("data", Resource::Data, limits.memory),
        ("address space", Resource::As, limits.memory.saturating_mul(ADDRESS_SPACE)),
        ("processor time", Resource::Cpu, limits.cpu_seconds),
        ("file size", Resource::Fsize, limits.disk),
        ("processes", Resource::Nproc, tasks),
        ("open files", Resource::Nofile, limits.files),
        ("core size", Resource::Core, 0),
        ("locked memory", Resource::Memlock, 64 << 10),
        ("message queues", Resource::Msgqueue, 0),
    ] {
        // Never above what holds already.
        let present = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = most.min(present);
        // Between the two bounds of processor time there is a signal that says what it is about; at the second, any end.
        let last = if resource == Resource::Cpu { most.saturating_add(5).min(present) } else { most };
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(last) })
            .map_err(|fault| format!("the limit of {name} cannot be set: {fault}"))?;
    }
    Ok(())
}
