//! Waiting to be told to stop.

/// Returns on Ctrl-C or SIGTERM.
pub(crate) async fn asked() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(signal) => signal,
        // Without a handler for SIGTERM its default still ends the process.
        Err(_) => return drop(tokio::signal::ctrl_c().await),
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
