//! Where worlds keep their repositories: one directory, which goes with the command however it ends.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::terminal;

/// What a shell shows for a command that was ended by Ctrl-C.
const INTERRUPTED: i32 = 130;
/// How often the directory is tried to be taken away, and how long after the last time.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the directory, and has everything temporary made in it from now on. Ctrl-C and SIGTERM take it away and end the
/// command: a world cannot be stopped in its middle.
pub(super) fn prepare() -> Result<TempDir, Failure> {
    let no_place = |error: std::io::Error| Failure::failed(format!("no temporary directory: {error}"));
    let ground = tempfile::Builder::new().prefix("baton-simulate-").tempdir().map_err(no_place)?;
    // Somebody who has named another place before is followed: then nothing is made here.
    let _ = tempfile::env::override_temp_dir(ground.path());
    let path = ground.path().to_owned();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || listen(&path)).map_err(no_place)?;
    Ok(ground)
}

fn listen(ground: &Path) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async { Shutdown::listen().asked().await });
    // Worlds go on meanwhile: one that misses its repository waits for the end, and says nothing.
    std::panic::set_hook(Box::new(|_| {
        loop {
            std::thread::park();
        }
    }));
    // One may write once more.
    for _ in 0..ATTEMPTS {
        if std::fs::remove_dir_all(ground).is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let left = if ground.exists() { format!("; {} is left behind", ground.display()) } else { String::new() };
    terminal::remark(&format!("ended before all of it was seen{left}"));
    std::process::exit(INTERRUPTED);
}
