//! How much hooks and checks may use.

use std::time::Duration;

const MINUTE: u64 = 60;

/// How much hooks and checks may use.
///
/// The defaults are the proposal's numbers. They are also the most: [`Limits::within_maxima`] brings larger ones
/// down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Hooks under way at once.
    pub hooks: usize,
    /// Checks under way at once.
    pub checks: usize,
    /// How long an attempt may take that says nothing about it.
    pub timeout: Duration,
    /// Longest timeout of an HTTP call.
    pub http_timeout: Duration,
    /// Longest timeout of a command.
    pub command_timeout: Duration,
    /// Longest time over which a hook is tried again.
    pub retry_deadline: Duration,
    /// Most headers of a call.
    pub headers: usize,
    /// Most environment variables of a command.
    pub environment: usize,
    /// Bytes of an answer that are read; the rest is not waited for.
    pub response: usize,
    /// So many hooks in one phase, and no more, go without a warning.
    pub hooks_of_a_phase: usize,
    /// Most Applications of one phase.
    pub applications_of_a_phase: usize,
    /// What a command may use.
    pub command: CommandLimits,
}

/// What a command, with all processes it starts, may use of the machine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CommandLimits {
    /// Bytes of memory: the address space of each process, and what all of them together hold.
    pub memory: u64,
    /// Seconds of processor time of each process.
    pub cpu_seconds: u64,
    /// Bytes in the temporary directory, and in any one file.
    pub disk: u64,
    /// Processes at once.
    pub processes: u64,
    /// Open files of each process.
    pub files: u64,
    /// Bytes of what it prints that are kept, from the end.
    pub output: usize,
}

// === impl Limits ===

impl Limits {
    /// The same, with nothing above the defaults and nothing that would stop everything.
    pub fn within_maxima(self) -> Limits {
        let most = Limits::default();
        let second = Duration::from_secs(1);
        let http_timeout = self.http_timeout.clamp(second, most.http_timeout);
        let command_timeout = self.command_timeout.clamp(second, most.command_timeout);
        Limits {
            hooks: self.hooks.clamp(1, most.hooks),
            checks: self.checks.clamp(1, most.checks),
            timeout: self.timeout.clamp(second, most.timeout),
            http_timeout,
            command_timeout,
            retry_deadline: self.retry_deadline.clamp(second, most.retry_deadline),
            headers: self.headers.min(most.headers),
            environment: self.environment.min(most.environment),
            response: self.response.min(most.response),
            hooks_of_a_phase: self.hooks_of_a_phase.min(most.hooks_of_a_phase),
            applications_of_a_phase: self.applications_of_a_phase.clamp(1, most.applications_of_a_phase),
            command: self.command,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            hooks: 5,
            checks: 10,
            timeout: Duration::from_secs(5 * MINUTE),
            http_timeout: Duration::from_secs(10 * MINUTE),
            command_timeout: Duration::from_secs(30 * MINUTE),
            retry_deadline: Duration::from_secs(72 * 60 * MINUTE),
            headers: 50,
            environment: 100,
            response: 1 << 20,
            hooks_of_a_phase: 10,
            applications_of_a_phase: 1000,
            command: CommandLimits::default(),
        }
    }
}

impl Default for CommandLimits {
    /// The proposal has no numbers for these; they leave room for `kubectl` and a test suite.
    fn default() -> CommandLimits {
        CommandLimits {
            memory: 2 << 30,
            cpu_seconds: 30 * MINUTE,
            disk: 256 << 20,
            processes: 64,
            files: 256,
            output: 16 << 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_go_down_but_never_above_the_proposals_numbers() {
        let wide = Limits {
            hooks: 50,
            checks: 0,
            http_timeout: Duration::from_secs(3600),
            headers: 10,
            response: 1 << 30,
            ..Limits::default()
        };
        let limits = wide.within_maxima();
        assert_eq!((limits.hooks, limits.checks, limits.headers, limits.response), (5, 1, 10, 1 << 20));
        assert_eq!(limits.http_timeout, Duration::from_secs(600));
    }
}
