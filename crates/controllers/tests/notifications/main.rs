//! The notifications controller over an in-process API, alone and beside the Application controller whose work it tells
//! of.

#[path = "../appset/faults.rs"]
#[allow(dead_code, reason = "not every test that shares this file uses all of it")]
mod faults;
mod letterbox;
#[path = "../application/scene.rs"]
#[allow(dead_code, reason = "not every test that shares this file uses all of it")]
mod scene;
mod stage;

mod approvals;
mod configuration;
mod crashes;
mod crowds;
mod leaders;
mod subscriptions;
