//! In which order a set's Applications change and go. Pure: observations and time come in, decisions go out.
//!
//! The protocol is that of the ordering rules: a **pin** says what an Application is to be, a **run** is a numbered map
//! from Application to pin, the **head** is the small durable truth of a run, changed only by compare-and-swap. Every
//! write to an Application is first an intent in the head. [`machine::Machine`] is fed with what is seen and tells what
//! to do next; it never acts.

pub mod blocker;
pub mod control;
pub mod deletion;
pub mod explain;
pub mod fuse;
pub mod head;
pub mod live;
pub mod machine;
pub mod pin;
pub mod plan;
pub mod shift;
pub mod stamp;
pub mod steps;
pub mod trouble;
