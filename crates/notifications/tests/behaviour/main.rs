//! What notifications do, as those see it who configure, receive and lose processes.

mod catalog;
mod crashes;
mod decisions;
mod end_to_end;
mod hostile;
mod http;
mod mail;
mod receiver;
mod smtp_server;
mod subscriptions;
mod support;
