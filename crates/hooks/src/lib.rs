//! One HTTP call or command of a phase: judged before it runs, held while it does, and told of without its secrets.
//!
//! The way of a hook or a check:
//! 1. [`validate`] finds everything wrong with the configuration, with paths and remedies, before anything runs.
//! 2. [`prepare_hook`] and [`prepare_check`] fill in its templates for one target and judge what comes of it: a
//!    [`Call`].
//! 3. The [`Gate`] says when: so many hooks and checks at once, fairly across sets.
//! 4. The [`Runner`] makes the call, and the [`Outcome`] says what came of it.
//!
//! When a hook runs, how often it is tried, what its failure means and where its result is kept is not known here.
//!
//! The [`Connector`] under it, with its judgement of addresses, serves whoever else calls out.
//!
//! # What is written by hand, and why
//! - *The connection* ([`Resolve`], `http::connect`): clients with pools and resolvers of their own make it hard to
//!   say that the address that was judged is the one connected to, and that nothing stays open. hyper speaks HTTP
//!   and rustls TLS.
//! - *The supervisor* ([`sandbox`]): killing everything a command started needs a process that orphans fall to;
//!   control groups and namespaces are not there for an ordinary container. Landlock and seccomp come from
//!   `landlock` and `seccompiler`.
//! - *The table of addresses*: the standard library's is not stable, and knows nothing of wrapped IPv4 addresses.
//!
//! A program that uses this crate calls [`sandbox::enter_if_asked`] first thing in `main`; without it there are no
//! commands.

mod call;
mod command;
mod credential;
mod gate;
mod http;
mod limits;
mod needs;
mod outcome;
mod prepare;
mod runner;
pub mod sandbox;
mod scope;
mod secret;
mod settings;
mod text;
mod validate;

pub use call::{Action, Call, Invocation, Request, Role, SetName};
pub use gate::{Gate, Pass};
pub use http::{
    AllowList, Connector, Exchange, Inward, Places, Reply, Resolve, SettingError, SystemResolver, judge,
    origin,
};
pub use limits::{CommandLimits, Limits};
pub use needs::{Need, check_needs, hook_needs};
pub use outcome::{Fault, Outcome, Reason, Verdict};
pub use prepare::{Occasion, destination, prepare_check, prepare_hook};
pub use runner::Runner;
pub use scope::{check_timeout, hook_timeout, is_check_per_target, is_hook_per_target};
pub use secret::{Cut, Redactor, Secret};
pub use settings::Settings;
pub use text::{Language, Secrets};
pub use validate::{Finding, Namespace, Policy, Severity, validate};
