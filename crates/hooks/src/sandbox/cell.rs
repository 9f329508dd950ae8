//! The process that locks itself in and becomes the command.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::order::Order;
use super::{fence, filter, order, rlimits};

/// Reads its order from its input, locks itself in and becomes the command. Its output is for complaints to the
/// supervisor, and closes by itself when the command has started; its error output becomes both outputs of the
/// command.
pub(super) fn enter() -> ExitCode {
    // Copies close when the command starts, whatever becomes of the numbers 1 and 2.
    let complaints = io::stdout().as_fd().try_clone_to_owned();
    let outputs = io::stderr().as_fd().try_clone_to_owned();
    let (Ok(complaints), Ok(outputs)) = (complaints, outputs) else { return ExitCode::FAILURE };
    let complaint = match order::read::<Order>(io::stdin().lock()) {
        Ok(order) => match become_command(&order, File::from(outputs)) {
            Ok(never) => match never {},
            Err(complaint) => complaint,
        },
        Err(fault) => format!("its order did not arrive: {fault}"),
    };
    let _ = order::write(File::from(complaints), &complaint);
    ExitCode::FAILURE
}

fn become_command(order: &Order, outputs: File) -> Result<std::convert::Infallible, String> {
    let errors = outputs.try_clone().map_err(|fault| fault.to_string())?;
    rlimits::limit(&order.limits, order.tasks)?;
    give_up_privileges()?;
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    if order.landlock {
        fence::put_up(&fence::Fence {
            directory: &order.directory,
            scratch: &order.scratch,
            read: &order.read,
            scopes: order.scopes,
        })?;
    }
    if order.seccomp {
        filter::put_up(&filter::Filter {
            network: order.network,
            scopes: order.landlock && order.scopes,
            protected: &order.protected,
        })?;
    }
    let fault = Command::new(&order.program)
        .arg0(&order.name)
        .args(&order.arguments)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.directory)
        .stdin(Stdio::null())
        .stdout(outputs)
        .stderr(errors)
        .exec();
    Err(format!("the program cannot be executed: {fault}"))
}

/// Neither has privileges nor can get any, by set-user-id programs or otherwise.
fn give_up_privileges() -> Result<(), String> {
    let wrong = |fault: rustix::io::Errno| format!("privileges cannot be given up: {fault}");
    rustix::thread::set_no_new_privs(true).map_err(wrong)?;
    let nothing = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // What may be handed on goes first, while there is still a privilege to take it away with; without one it is
    // nothing.
    let _ = rustix::thread::clear_ambient_capability_set();
    for capability in CapabilitySet::all().iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    rustix::thread::set_capabilities(None, nothing).map_err(wrong)
}
