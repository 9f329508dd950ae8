//! How much hooks and checks may use: an operator can lower what is built in, and never raise it.

use std::time::Duration;

use baton_hooks::{CommandLimits, Limits};
use clap::Args;

use crate::apiserver::duration;
use crate::failure::Failure;

/// Limits. What is built in is the default and the most.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits of hooks and checks (what is built in is the most)")]
pub(super) struct LimitArguments {
    /// Hooks of all sets under way at once [default: 5].
    #[arg(long, value_name = "N")]
    hooks_max_concurrent: Option<usize>,
    /// Checks of all sets under way at once [default: 10].
    #[arg(long, value_name = "N")]
    hooks_max_checks: Option<usize>,
    /// How long an attempt may take that says nothing about it [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hooks_timeout: Option<Duration>,
    /// Longest timeout of an HTTP call [default: 10m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hooks_timeout_http: Option<Duration>,
    /// Longest timeout of a command [default: 30m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hooks_timeout_command: Option<Duration>,
    /// Longest time over which a hook is tried again [default: 72h].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hooks_retry_deadline: Option<Duration>,
    /// Most headers of a call [default: 50].
    #[arg(long, value_name = "N")]
    hooks_max_headers: Option<usize>,
    /// Most environment variables of a command [default: 100].
    #[arg(long, value_name = "N")]
    hooks_max_env: Option<usize>,
    /// Bytes of an answer that are read [default: 1048576].
    #[arg(long, value_name = "BYTES")]
    hooks_response_limit: Option<usize>,
    /// More hooks than this in one phase are a warning [default: 10].
    #[arg(long, value_name = "N")]
    hooks_warn_above: Option<usize>,
    /// Most Applications of one phase [default: 1000].
    #[arg(long, value_name = "N")]
    phases_max_applications: Option<usize>,
    /// Bytes of memory of a command, with all its processes [default: 2147483648].
    #[arg(long, value_name = "BYTES")]
    hooks_command_memory: Option<u64>,
    /// Processor time of each process of a command [default: 30m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hooks_command_cpu: Option<Duration>,
    /// Bytes that a command may write [default: 268435456].
    #[arg(long, value_name = "BYTES")]
    hooks_command_disk: Option<u64>,
    /// Processes and threads of a command [default: 64].
    #[arg(long, value_name = "N")]
    hooks_command_processes: Option<u64>,
    /// Open files of each process of a command [default: 256].
    #[arg(long, value_name = "N")]
    hooks_command_files: Option<u64>,
}

// === impl LimitArguments ===

impl LimitArguments {
    /// The limits.
    ///
    /// # Errors
    /// One that is above what is built in, or so low that nothing would ever be called.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let most = Limits::default();
        let (of_command, second) = (&most.command, Duration::from_secs(1));
        let cpu = Duration::from_secs(of_command.cpu_seconds);
        let cpu = within("hooks-command-cpu", self.hooks_command_cpu, second, cpu)?;
        let command = CommandLimits {
            memory: within("hooks-command-memory", self.hooks_command_memory, 1 << 20, of_command.memory)?,
            cpu_seconds: cpu.as_secs(),
            disk: within("hooks-command-disk", self.hooks_command_disk, 0, of_command.disk)?,
            processes: within(
                "hooks-command-processes",
                self.hooks_command_processes,
                1,
                of_command.processes,
            )?,
            files: within("hooks-command-files", self.hooks_command_files, 8, of_command.files)?,
            output: of_command.output,
        };
        Ok(Limits {
            hooks: within("hooks-max-concurrent", self.hooks_max_concurrent, 1, most.hooks)?,
            checks: within("hooks-max-checks", self.hooks_max_checks, 1, most.checks)?,
            timeout: within("hooks-timeout", self.hooks_timeout, second, most.timeout)?,
            http_timeout: within("hooks-timeout-http", self.hooks_timeout_http, second, most.http_timeout)?,
            command_timeout: within(
                "hooks-timeout-command",
                self.hooks_timeout_command,
                second,
                most.command_timeout,
            )?,
            retry_deadline: within(
                "hooks-retry-deadline",
                self.hooks_retry_deadline,
                second,
                most.retry_deadline,
            )?,
            headers: within("hooks-max-headers", self.hooks_max_headers, 0, most.headers)?,
            environment: within("hooks-max-env", self.hooks_max_env, 0, most.environment)?,
            response: within("hooks-response-limit", self.hooks_response_limit, 0, most.response)?,
            hooks_of_a_phase: within("hooks-warn-above", self.hooks_warn_above, 0, most.hooks_of_a_phase)?,
            applications_of_a_phase: within(
                "phases-max-applications",
                self.phases_max_applications,
                1,
                most.applications_of_a_phase,
            )?,
            command,
        })
    }
}

/// What was said of a limit, if it is one that may be.
fn within<T: Copy + PartialOrd + Shown>(
    flag: &str,
    said: Option<T>,
    least: T,
    most: T,
) -> Result<T, Failure> {
    let refuse =
        |said: T, why: String| Err(Failure::usage(format!("--{flag}: {} is too {why}", said.shown())));
    match said {
        Some(said) if said > most => {
            refuse(said, format!("much: {} is the most, and the default", most.shown()))
        }
        Some(said) if said < least => refuse(said, format!("little: {} is the least", least.shown())),
        Some(said) => Ok(said),
        None => Ok(most),
    }
}

/// As people write it.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for Duration {
    fn shown(&self) -> String {
        baton_phases::forecast::brief(*self)
    }
}

impl Shown for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for usize {
    fn shown(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArguments,
    }

    fn read(words: &[&str]) -> Result<Limits, Failure> {
        let line = Line::try_parse_from([&["baton"], words].concat()).expect("flags that exist");
        line.limits.limits()
    }

    /// Each flag, with a value below what is built in, that, and the next above.
    const FLAGS: [(&str, &str, &str, &str); 16] = [
        ("--hooks-max-concurrent", "2", "5", "6"),
        ("--hooks-max-checks", "3", "10", "11"),
        ("--hooks-timeout", "1m", "5m", "5m1s"),
        ("--hooks-timeout-http", "2m", "10m", "10m1s"),
        ("--hooks-timeout-command", "3m", "30m", "30m1s"),
        ("--hooks-retry-deadline", "1h", "72h", "72h1s"),
        ("--hooks-max-headers", "4", "50", "51"),
        ("--hooks-max-env", "5", "100", "101"),
        ("--hooks-response-limit", "1024", "1048576", "1048577"),
        ("--hooks-warn-above", "6", "10", "11"),
        ("--phases-max-applications", "70", "1000", "1001"),
        ("--hooks-command-memory", "8388608", "2147483648", "2147483649"),
        ("--hooks-command-cpu", "7s", "30m", "30m1s"),
        ("--hooks-command-disk", "4096", "268435456", "268435457"),
        ("--hooks-command-processes", "8", "64", "65"),
        ("--hooks-command-files", "9", "256", "257"),
    ];

    #[test]
    fn row_39_every_limit_is_a_flag_whose_default_is_its_maximum() {
        let built_in = Limits::default();
        assert_eq!(read(&[]).expect("defaults"), built_in);
        for (flag, _, most, above) in FLAGS {
            assert_eq!(read(&[flag, most]).expect(flag), built_in, "{flag}: the default is the most");
            let refused = read(&[flag, above]).expect_err(flag).to_string();
            let told = refused.contains(flag) && refused.contains(&format!("{most} is the most"));
            assert!(told && refused.contains(&format!("{above} is too much")), "{refused}");
        }
        for (flag, none) in [("--hooks-max-concurrent", "0"), ("--hooks-timeout-http", "0s")] {
            let refused = read(&[flag, none]).expect_err(flag).to_string();
            assert!(refused.contains(flag) && refused.contains("is the least"), "{refused}");
        }
    }

    #[test]
    fn row_39_limits_go_where_they_belong() {
        let words: Vec<&str> = FLAGS.iter().flat_map(|(flag, below, ..)| [*flag, *below]).collect();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let expected = Limits {
            hooks: 2,
            checks: 3,
            timeout: minutes(1),
            http_timeout: minutes(2),
            command_timeout: minutes(3),
            retry_deadline: minutes(60),
            headers: 4,
            environment: 5,
            response: 1024,
            hooks_of_a_phase: 6,
            applications_of_a_phase: 70,
            command: CommandLimits {
                memory: 8 << 20,
                cpu_seconds: 7,
                disk: 4096,
                processes: 8,
                files: 9,
                output: CommandLimits::default().output,
            },
        };
        assert_eq!(read(&words).expect("limits"), expected);
    }
}
