//! Phased deployments, by the rules they follow. `docs/phases.md` lists which test holds which.

mod back;
mod calls;
mod configurations;
mod course;
mod crashes;
mod failure;
mod orders;
mod people;
mod removal;
mod room;
mod selection;
mod world;
