//! The Application controller over in-process clusters and a real git repository.

#[path = "../appset/faults.rs"]
#[allow(dead_code)]
mod faults;
mod scene;

mod approval;
mod deletion;
mod lifecycle;
mod mishaps;
mod operations;
mod operators;
mod quiet;
mod reach;
mod rules;
