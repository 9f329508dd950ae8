//! Phased deployments, by the rules they follow. The proposal leaves fifty questions open, and each has one answer; a test
//! that holds answer number 7 has `row_07` in its name and fails when the answer is turned around. `rows.md`, beside this
//! file, names the tests of each answer, also those of other crates: what is about one call is held by `baton-hooks`, and
//! that a run keeps to what is decided here by the controller's tests.

mod anew;
mod back;
mod calls;
mod configurations;
mod course;
mod crashes;
mod endings;
mod failure;
mod orders;
mod outlook;
mod people;
mod removal;
mod room;
mod selection;
mod world;
