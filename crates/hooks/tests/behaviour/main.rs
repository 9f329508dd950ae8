//! Hooks and checks as their users and their enemies meet them: over real sockets, with real processes.

mod calls;
mod commands;
mod configurations;
mod guard;
mod limits;
mod receiver;
mod redirects;
mod secrets;
mod support;
mod tls;
mod villainy;
