//! The API for people and programs: sign-in, Argo CD's REST surface, rollouts and approvals.
//!
//! [`Server`] is the API without any transport: a typed request in, an answer or an error out, one question to the
//! [`Gate`] and one record for what changes something. [`rest`] puts it behind HTTP.
//!
//! # Guarantees
//! - Nobody learns whether something exists that they may not see.
//! - Values of Secrets and credentials in URLs do not leave, whatever holds them.
//! - A call that changes something is written down with who made it, or was not made.
//! - A stream ends when the token of its listener does.

mod approvals;
mod audit;
pub mod auth;
mod badge;
mod caller;
mod configuration;
mod error;
mod fields;
mod fleet;
mod gate;
pub mod handlers;
mod links;
mod logs;
mod masking;
mod mirror;
mod objects;
mod registered;
pub mod rest;
pub mod rollouts;
mod server;
mod sources;

pub use approvals::{About, Approval, Blast, Doomed, Kind as ApprovalKind};
pub use caller::{Caller, Proof};
pub use error::{Code, Error};
pub use gate::{Ask, Decision, Gate};
pub use server::{Allows, Context, Parts, Server, Settings};
pub use sources::{Described, Later, References, Sources};
