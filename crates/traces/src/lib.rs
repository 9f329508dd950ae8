//! The runs of rollouts as traces: a span for the run, one for each step and phase, one for each hook and check.
//!
//! What a run was is read off the set's status when it has ended ([`run`], pure), put into words of OTLP ([`otlp`], pure)
//! and sent to a collector ([`Traces`], [`Exporter`]). Identities follow from the set and the number of the run, so whoever
//! tells the same run again tells the same spans. Nothing waits for a collector, and nothing rests on what it has.

mod export;
pub mod otlp;
pub mod run;
mod span;

pub use export::{Collector, CollectorError, Exporter, Traces, channel, exporter};
pub use span::{Attribute, Outcome, Span};
