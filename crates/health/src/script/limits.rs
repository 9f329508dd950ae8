//! How long and how large a script may become.
//!
//! Lua tells a hook every hundred instructions and at every call. Functions written in Rust and those of C's library
//! are not interrupted, so each is bounded itself or tells the [`Meter`] what it does.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mlua::{Error, HookTriggers, Lua, VmState, debug::DebugEvent};

/// Longest time a script may run.
pub(crate) const WALL: Duration = Duration::from_secs(1);

/// Most memory a script may use, in bytes, its object included.
pub(crate) const MEMORY: usize = 64 << 20;

/// Longest text a script may make in one call, in bytes.
pub(crate) const MAX_TEXT: usize = 8 << 20;

/// Most steps a script may take, so that the same script meets its limit on any machine. A script that looks at every
/// field of the largest object takes a tenth.
const STEPS: u64 = 10_000_000;

/// Instructions between two looks at the clock.
const STRIDE: u32 = 100;

/// What a script has left.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Set when the script starts: bringing in a large object is not its doing.
    deadline: OnceLock<Instant>,
    steps: AtomicU64,
    spent: AtomicBool,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter { deadline: OnceLock::new(), steps: AtomicU64::new(STEPS), spent: AtomicBool::new(false) }
    }

    /// Whether the script has used up what it had.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// Takes steps off what is left; looks at the clock each time.
    ///
    /// # Errors
    /// Nothing is left.
    pub(crate) fn charge(&self, steps: u64) -> Result<(), Error> {
        let left = self.steps.load(Ordering::Relaxed).saturating_sub(steps);
        self.steps.store(left, Ordering::Relaxed);
        if left == 0 || self.deadline.get().is_some_and(|deadline| Instant::now() > *deadline) {
            self.spent.store(true, Ordering::Relaxed);
        }
        if self.is_spent() { Err(stopped()) } else { Ok(()) }
    }
}

/// From now on counts the script's time, and stops it when its meter is spent.
pub(crate) fn enforce(lua: &Lua, meter: &Arc<Meter>) -> Result<(), Error> {
    meter.deadline.get_or_init(|| Instant::now() + WALL);
    let meter = Arc::clone(meter);
    let often = HookTriggers::new().every_nth_instruction(STRIDE).on_calls();
    lua.set_global_hook(often, move |lua, event| {
        let steps = if event.event() == DebugEvent::Count { u64::from(STRIDE) } else { 1 };
        let left = meter.charge(steps);
        if left.is_err() {
            stop(lua)?;
        }
        left.map(|()| VmState::Continue)
    })
}

/// Makes every instruction fail, so that a script that catches the error gets no further than the next one.
fn stop(lua: &Lua) -> Result<(), Error> {
    let always = HookTriggers::new().every_nth_instruction(1).on_calls();
    lua.set_global_hook(always, |_, _| Err(stopped()))
}

fn stopped() -> Error {
    Error::RuntimeError("the script ran for too long".to_owned())
}
