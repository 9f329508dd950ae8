//! Hosts asked over real HTTP: servers in the tests answer as the hosts document, and as they do on bad days.

#[allow(dead_code)]
mod server;
mod tables;
