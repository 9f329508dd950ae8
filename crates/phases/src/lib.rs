//! Phased deployments of a generator's Applications (`generators[].deploymentStrategy`). Pure: what is stored and seen, and
//! the time, come in; decisions go out.
//!
//! The way of a phased deployment:
//! 1. [`compile()`] reads the configuration into a [`Plan`], with everything that is wrong about it.
//! 2. [`identity::follow`] says which rollout this is.
//! 3. [`decide`] says, from the stored status, what is stored next and what follows from what is stored: who may be changed
//!    ([`Gate`]), what is called ([`Call`]) and ended, who is put back, when to look again, and what is waited for.
//! 4. [`details`] keeps the status small, [`history`] the good states to go back to, and [`mirror`] tells what annotations
//!    say of it.
//!
//! [`forecast`], [`preview`] and [`lint`] tell beforehand what will happen and what cannot, and [`standing`] how far it
//! is. Every rule has a test: `tests/behaviour` begins with a list of them.

mod anywhere;
mod asking;
mod calls;
mod compile;
mod config;
pub mod details;
pub mod forecast;
pub mod history;
pub mod identity;
mod instant;
pub mod lint;
mod lists;
mod machine;
pub mod mirror;
mod outlook;
pub mod preview;
mod sheet;
mod situation;
pub mod standing;
mod targets;
pub mod version;

pub use anywhere::{Anywhere, compile_anywhere, language};
pub use asking::{Answer, Ask, refusal};
pub use calls::{Call, CallKey, CallResult, idempotency_key};
pub use compile::{Compiled, compile, misplaced};
pub use config::{Action, Again, CallFailure, CallPlan, Caps, NeedPlan, PhasePlan, Plan};
pub use machine::{decide, phase_held_by};
pub use outlook::{Outlook, outlook};
pub use situation::{Decision, Gate, Hold, Notice, Progress, Requests, Seen, Situation, Strategy, Wait};
pub use targets::{Group, Roster, Standing, Target, assign, assign_beside, holds};
