//! The engine against a cluster in memory.

#[path = "../world/mod.rs"]
#[allow(dead_code, reason = "every binary of tests uses a part of it")]
mod world;

mod approvals;
mod chance;
mod crashes;
mod failures;
mod hooks;
mod options;
mod ordering;
mod prunes;
mod waves;

use baton_api::application_status::OperationPhase;
use world::Pass;

fn succeeded(message: &str) -> Pass {
    Pass::Ended { phase: OperationPhase::Succeeded, message: format!("successfully synced ({message})") }
}

fn failed(message: &str) -> Pass {
    Pass::Ended { phase: OperationPhase::Failed, message: message.to_owned() }
}

fn waits(message: &str) -> Pass {
    Pass::Waits { message: message.to_owned(), approvals: Vec::new() }
}
