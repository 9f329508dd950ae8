//! Rounds over an embedded API under a paused clock, with calls that do as they are told, and once with real ones.

#[path = "../../../tests/appset/faults.rs"]
#[allow(dead_code, reason = "not every test that shares this file fails requests in every way")]
mod faults;

mod calling;
mod earnest;
mod good;
mod lines;
mod mishaps;
mod removal;
mod rounds;
mod script;
mod storm;
mod world;
