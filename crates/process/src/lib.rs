//! Runs programs: without this process's environment, within limits, and gone with all their children when nobody
//! waits for them any more.
//!
//! Processes run on blocking threads and are timed by the machine's clock. A test that pauses tokio's clock may so
//! run real processes: tokio does not let time pass while a blocking task works.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::Semaphore;

/// How much of what a process complains about is kept.
const MAX_COMPLAINT: usize = 32 << 10;

/// How often limits are looked at while a process runs.
const LOOK: Duration = Duration::from_millis(100);

/// One run of a program.
#[derive(Debug)]
pub struct Invocation {
    /// The program: a name looked for in `PATH`, or a path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The directory it runs in.
    pub directory: PathBuf,
    /// All its environment: nothing of this process's own is added.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads from its input.
    pub input: Vec<u8>,
    /// When it is given up.
    pub bounds: Bounds,
}

/// When a run is given up.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Longest time it may take.
    pub total: Duration,
    /// Longest time it may print nothing.
    pub silence: Duration,
    /// A directory that may not grow over so many bytes.
    pub growth: Option<(PathBuf, u64)>,
}

/// Why a run gave nothing.
#[derive(Debug)]
pub enum Failure {
    /// The program could not be started or spoken to.
    Io(io::Error),
    /// It ended with an error; what it complained about, not yet safe to show.
    Exit(String),
    /// It said nothing for too long.
    Silent(Duration),
    /// It took too long.
    Late(Duration),
    /// The watched directory grew over its bound.
    Grown(u64),
    /// The reader of its output had enough.
    Refused(Refusal),
    /// Nobody waits any more.
    Abandoned,
}

/// What the reader of an output found wrong.
#[derive(Debug)]
pub enum Refusal {
    /// The output broke off.
    Io(io::Error),
    /// It is more than it may be.
    Limit(String),
    /// It is not what it should be.
    Content(String),
    /// An object, by its place among those asked for, has more bytes than it may.
    Large {
        /// The place, from 0.
        place: usize,
        /// How many bytes it has.
        bytes: u64,
    },
}

impl From<io::Error> for Refusal {
    fn from(fault: io::Error) -> Self {
        Refusal::Io(fault)
    }
}

/// Starts processes, so many at once.
#[derive(Debug, Clone)]
pub struct Runner {
    places: Arc<Semaphore>,
}

impl Runner {
    /// Lets that many run at once.
    pub fn new(processes: usize) -> Runner {
        Runner { places: Arc::new(Semaphore::new(processes.clamp(1, 256))) }
    }

    /// Runs a program, giving its output to `reader`. The process and all its children are killed when the returned
    /// future is dropped.
    ///
    /// # Errors
    /// The program cannot be run, ends with an error or passes a bound; or the reader refuses its output.
    pub async fn run<T: Send + 'static>(
        &self,
        invocation: Invocation,
        reader: impl FnOnce(&mut dyn Read) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let Ok(place) = self.places.clone().acquire_owned().await else { return Err(Failure::Abandoned) };
        let run = Arc::new(Run::default());
        let _abandon = AbandonOnDrop(run.clone());
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            run_to_end(invocation, &run, reader)
        });
        task.await.unwrap_or(Err(Failure::Abandoned))
    }

    /// Runs a program and gives all it prints, up to `most` bytes.
    ///
    /// # Errors
    /// As for [`Runner::run`]; and more output than that.
    pub async fn output(&self, invocation: Invocation, most: usize) -> Result<Vec<u8>, Failure> {
        self.run(invocation, move |output| {
            let mut all = Vec::new();
            output.take(most as u64 + 1).read_to_end(&mut all)?;
            if all.len() > most {
                return Err(Refusal::Limit(format!("it printed more than {most} bytes")));
            }
            Ok(all)
        })
        .await
    }
}

/// One running process, as its watchers see it.
#[derive(Debug, Default)]
struct Run {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Present while the process runs and has not been waited for: its number cannot mean another yet.
    process: Option<Pid>,
    heard: Option<Instant>,
    abandoned: bool,
    given_up: Option<Failure>,
}

impl State {
    /// Whether the process has ended and only waits to be waited for.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.process.is_none_or(|process| !matches!(waitid(WaitId::Pid(process), look), Ok(None)))
    }

    fn kill(&mut self) {
        if let Some(process) = self.process {
            // It may have ended by itself in the meantime.
            let _ = kill_process_group(process, Signal::KILL);
        }
    }
}

struct AbandonOnDrop(Arc<Run>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.abandoned = true;
        state.kill();
        self.0.changed.notify_all();
    }
}

fn run_to_end<T>(
    invocation: Invocation,
    run: &Run,
    reader: impl FnOnce(&mut dyn Read) -> Result<T, Refusal>,
) -> Result<T, Failure> {
    let bounds = invocation.bounds.clone();
    let mut child = {
        let mut state = run.state.lock();
        if state.abandoned {
            return Err(Failure::Abandoned);
        }
        let child = command(&invocation).spawn().map_err(Failure::Io)?;
        state.process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        state.heard = Some(Instant::now());
        child
    };
    let input = invocation.input;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (result, complaint, status) = std::thread::scope(|scope| {
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let started = thread("process-watch")
            .spawn_scoped(scope, || watch(run, &bounds))
            .and_then(|_| {
                // A process that ends early closes its input: that shows in its exit, not here.
                thread("process-input")
                    .spawn_scoped(scope, move || stdin.map(|mut pipe| pipe.write_all(&input)))
            })
            .and_then(|_| thread("process-complaint").spawn_scoped(scope, move || complaint(stderr, run)));
        let result = match (&started, stdout) {
            (Ok(_), Some(stdout)) => {
                let mut output = Heard { inner: io::BufReader::with_capacity(64 << 10, stdout), run };
                let result = reader(&mut output);
                if result.is_err() {
                    run.state.lock().kill();
                }
                result
            }
            (Ok(_), None) => Err(Refusal::Io(io::Error::other("the process has no output"))),
            (Err(fault), _) => {
                run.state.lock().kill();
                Err(Refusal::Io(io::Error::other(fault.to_string())))
            }
        };
        let status = wait(&mut child, run);
        let complaint = started.ok().and_then(|handle| handle.join().ok()).unwrap_or_default();
        (result, complaint, status)
    });
    let mut state = run.state.lock();
    if let Some(failure) = state.given_up.take() {
        return Err(failure);
    }
    if state.abandoned {
        return Err(Failure::Abandoned);
    }
    let status = status.map_err(Failure::Io)?;
    // A process may end before it was looked at once.
    if let Some((directory, most)) = &bounds.growth
        && directory_size(directory) > *most
    {
        return Err(Failure::Grown(*most));
    }
    match result {
        Err(Refusal::Io(fault)) if status.success() => Err(Failure::Io(fault)),
        Err(refusal) if !matches!(refusal, Refusal::Io(_)) => Err(Failure::Refused(refusal)),
        Ok(value) if status.success() => Ok(value),
        _ => Err(Failure::Exit(complaint)),
    }
}

fn command(invocation: &Invocation) -> Command {
    let mut command = Command::new(found(invocation));
    command
        .args(&invocation.arguments)
        .current_dir(&invocation.directory)
        .env_clear()
        .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Where the program is. A program given by its path is started without a copy of this process's memory map, which
/// takes the longer the more memory there is; one given by name would not be, for its `PATH` is not ours.
fn found(invocation: &Invocation) -> PathBuf {
    let program = &invocation.program;
    if program.components().count() > 1 {
        return program.clone();
    }
    let path = invocation.environment.iter().rfind(|(name, _)| name == "PATH");
    let places = path.map(|(_, places)| std::env::split_paths(places).collect::<Vec<_>>());
    let mut candidates = places.into_iter().flatten().map(|place| place.join(program));
    candidates.find(|candidate| is_executable(candidate)).unwrap_or_else(|| program.clone())
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Kills the process when it passes a bound; ends when the process has ended.
fn watch(run: &Run, bounds: &Bounds) {
    let begin = Instant::now();
    let mut state = run.state.lock();
    while state.process.is_some() {
        let heard = state.heard.unwrap_or(begin);
        let silent = heard.elapsed() > bounds.silence;
        let late = begin.elapsed() > bounds.total;
        if state.abandoned || state.has_ended() {
            // What a process that ended left behind may hold its output open for ever.
            state.kill();
        } else if silent || late {
            let failure = if late { Failure::Late(bounds.total) } else { Failure::Silent(bounds.silence) };
            state.given_up.get_or_insert(failure);
            state.kill();
        } else if let Some((directory, most)) = &bounds.growth {
            let size = parking_lot::MutexGuard::unlocked(&mut state, || directory_size(directory));
            if size > *most {
                state.given_up.get_or_insert(Failure::Grown(*most));
                state.kill();
            }
        }
        run.changed.wait_for(&mut state, LOOK);
    }
}

/// Waits for the process. It is waited for only under the lock, so that nobody kills a number that is no longer its;
/// and what it left behind is killed before, while the number still is.
fn wait(child: &mut Child, run: &Run) -> io::Result<ExitStatus> {
    let mut pause = Duration::from_micros(200);
    let mut state = run.state.lock();
    while !state.has_ended() {
        run.changed.wait_for(&mut state, pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    state.kill();
    let status = child.wait();
    state.process = None;
    run.changed.notify_all();
    status
}

/// Reads what the process complains about; only the end is kept.
fn complaint(stderr: Option<impl Read>, run: &Run) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut kept: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut chunk) {
        run.state.lock().heard = Some(Instant::now());
        kept.extend_from_slice(&chunk[..length]);
        if kept.len() > MAX_COMPLAINT {
            kept.drain(..kept.len() - MAX_COMPLAINT / 2);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// An output whose every piece shows that the process is alive.
struct Heard<'a, R> {
    inner: R,
    run: &'a Run,
}

impl<R: Read> Read for Heard<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.run.state.lock().heard = Some(Instant::now());
        Ok(length)
    }
}

/// The bytes all files under a directory take; what vanishes meanwhile counts nothing.
pub fn directory_size(directory: &Path) -> u64 {
    let mut size = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => open.push(entry.path()),
                Ok(metadata) => size += metadata.len(),
                Err(_) => {}
            }
        }
    }
    size
}
