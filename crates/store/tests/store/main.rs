//! What a store promises, shown through its public API.

mod concurrency;
mod crash;
mod disk;
mod listing;
mod model;
mod object;
mod random;
mod watching;
mod writing;
