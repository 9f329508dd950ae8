//! What an operator decides about the hooks and checks of phased deployments.

mod limits;

use std::path::PathBuf;

use baton_controllers::HookSettings;
use baton_hooks::{AllowList, Places, SettingError, Settings};
use clap::Args;

use crate::failure::Failure;
use limits::LimitArguments;

/// What hooks and checks may do. Without any of these there are HTTPS calls to public addresses, and no commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hooks and checks of phased deployments")]
pub(crate) struct HookArguments {
    /// The only directory that commands may come from; without it there are none.
    #[arg(long, env = "BATON_HOOKS_DIR", value_name = "DIR")]
    hooks_dir: Option<PathBuf>,
    /// Hosts and networks that may be called although they lead inward, as `hooks.svc` or `10.1.0.0/16`.
    #[arg(long, env = "BATON_HOOKS_ALLOW", value_name = "HOSTS", value_delimiter = ',')]
    hooks_allow: Vec<String>,
    /// Let http:// be called.
    #[arg(long, env = "BATON_HOOKS_ALLOW_HTTP", value_name = "BOOL", num_args = 0..=1, default_value = "false", default_missing_value = "true", value_parser = switch)]
    hooks_allow_http: bool,
    /// Let insecureSkipVerify count.
    #[arg(long)]
    hooks_allow_insecure_tls: bool,
    /// Authorities to trust beside the machine's, in PEM.
    #[arg(long, value_name = "FILE")]
    hooks_ca: Option<PathBuf>,
    /// Where a host is, instead of what DNS says. May be repeated.
    #[arg(long, value_name = "HOST=ADDR")]
    hooks_resolve: Vec<String>,
    /// What commands may read besides. May be repeated.
    #[arg(long, value_name = "PATH")]
    hooks_read: Vec<PathBuf>,
    /// Other namespaces whose sets may make HTTP calls: globs, or regular expressions between slashes.
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    hooks_namespaces: Vec<String>,
    /// Run commands also where the kernel cannot hold them.
    #[arg(long)]
    hooks_allow_unsandboxed: bool,
    /// Take the network from commands.
    #[arg(long)]
    hooks_no_network: bool,
    #[command(flatten)]
    limits: Box<LimitArguments>,
}

/// As Argo CD's variables are read.
fn switch(text: &str) -> Result<bool, String> {
    baton_controllers::switch(text).ok_or_else(|| "must be true or false".to_owned())
}

// === impl HookArguments ===

impl HookArguments {
    /// What is decided.
    pub(crate) fn settings(&self) -> Result<HookSettings, Failure> {
        let usage = |flag: &str| {
            let flag = flag.to_owned();
            move |error: SettingError| Failure::usage(format!("--{flag}: {error}"))
        };
        let allow = AllowList::parse(self.hooks_allow.iter().map(String::as_str));
        let places = Places::parse(self.hooks_resolve.iter().map(String::as_str));
        if let Some(directory) = self.hooks_dir.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(Failure::usage(format!("--hooks-dir: {} is no directory", directory.display())));
        }
        // Commands are started elsewhere, where a relative path would be another.
        let read = self.hooks_read.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>();
        let read = read.map_err(|error| Failure::usage(format!("--hooks-read: {error}")))?;
        if let Some(absent) = read.iter().find(|path| !path.exists()) {
            return Err(Failure::usage(format!("--hooks-read: there is no {}", absent.display())));
        }
        let calls = Settings {
            allow: allow.map_err(usage("hooks-allow"))?,
            allow_http: self.hooks_allow_http,
            allow_insecure_tls: self.hooks_allow_insecure_tls,
            authorities: self.hooks_ca.clone(),
            places: places.map_err(usage("hooks-resolve"))?,
            directory: self.hooks_dir.clone(),
            read,
            allow_unsandboxed: self.hooks_allow_unsandboxed,
            command_network: !self.hooks_no_network,
            limits: self.limits.limits()?,
            ..Settings::default()
        };
        Ok(HookSettings { calls, namespaces: self.hooks_namespaces.clone() })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        hooks: HookArguments,
    }

    fn calls(words: &[&str]) -> Settings {
        let line = Line::try_parse_from([&["baton"], words].concat()).expect("flags that exist");
        line.hooks.settings().expect("usable settings").calls
    }

    #[test]
    fn the_network_is_taken_from_commands_only_if_the_operator_says_so() {
        assert!(calls(&[]).command_network);
        assert!(!calls(&["--hooks-no-network"]).command_network);
    }

    #[test]
    fn what_commands_may_read_is_where_the_operator_stands() {
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(calls(&["--hooks-read", "src"]).read, [here.join("src")]);
    }

    #[test]
    fn what_commands_may_read_must_be_there() {
        let words = ["baton", "--hooks-read", "src", "--hooks-read", "no/such/place"];
        let refused = Line::parse_from(words).hooks.settings().expect_err("a path that is not there");
        assert_eq!(refused.code(), crate::failure::USAGE);
        let told = refused.to_string();
        assert!(told.starts_with("--hooks-read: there is no /") && told.ends_with("no/such/place"), "{told}");
    }

    #[test]
    fn limits_reach_the_calls() {
        assert_eq!(calls(&["--hooks-max-concurrent", "2"]).limits.hooks, 2);
        assert_eq!(calls(&[]).limits, baton_hooks::Limits::default());
    }
}
