//! Waiting to be told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears Ctrl-C and SIGTERM from the moment it is made, so that none is missed while a server starts.
pub(crate) struct Shutdown {
    signals: [Option<Signal>; 2],
}

impl Shutdown {
    /// Must be made within the runtime.
    pub(crate) fn listen() -> Shutdown {
        // Without a handler the default of a signal still ends the process.
        Shutdown { signals: [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok()) }
    }

    /// Returns when either has come.
    pub(crate) async fn asked(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            () = heard(interrupt) => {}
            () = heard(terminate) => {}
        }
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
