//! The ApplicationSet controller over an embedded API, under a paused clock.

mod deletion;
mod faults;
mod goldens;
mod lifecycle;
mod quiet;
mod rules;
mod safety;
mod scene;
mod tls;
