//! Somebody at a terminal: commands with a home of their own, at a server and without one.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::place::Place;
use crate::process::{Outcome, Running, baton};

/// A terminal beside a running fleet.
pub(crate) struct Shell<'p> {
    place: &'p Place,
    /// What is added to every command.
    with: Vec<String>,
}

impl<'p> Shell<'p> {
    /// Whoever has signed in nowhere yet.
    pub(crate) fn anew(place: &'p Place) -> Shell<'p> {
        Shell { place, with: Vec::new() }
    }

    /// Whoever has signed in as `admin`.
    pub(crate) fn signed_in(place: &'p Place) -> Shell<'p> {
        let shell = Shell { place, with: Vec::new() };
        let password = place.home.path().join("up/admin-password");
        let address = place.address.to_string();
        let mut command =
            shell.command(&["login", &address, "--plaintext", "--username", "admin", "--password-stdin"]);
        let outcome = Shell::ended(command.stdin(fs::File::open(password).expect("a password")));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        shell
    }

    /// Whoever has the kubeconfig of the control plane, signed in or not.
    pub(crate) fn without_server(place: &'p Place) -> Shell<'p> {
        let kubeconfig = place.home.path().join("up/kubeconfig");
        let with = ["--core", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")].map(str::to_owned);
        Shell { place, with: with.into() }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Running::of(self.command(arguments)).ends()
    }

    /// Runs a command that reads something.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let path = self.place.home.path().join("input");
        fs::write(&path, input).expect("a file");
        Shell::ended(self.command(arguments).stdin(fs::File::open(&path).expect("a file")))
    }

    /// What a command prints that succeeds.
    #[track_caller]
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    /// What a command prints as JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.says(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
    }

    /// A command that fails, with its code and something it says.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str], code: i32, part: &str) {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{arguments:?}: {part:?} is not in {}", outcome.stderr);
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = baton();
        command.env("HOME", self.place.home.path()).args(arguments).args(&self.with);
        for name in
            ["ARGOCD_CONFIG_DIR", "ARGOCD_SERVER", "ARGOCD_AUTH_TOKEN", "KUBECONFIG", "DISPLAY", "BROWSER"]
        {
            command.env_remove(name);
        }
        command
    }

    fn ended(command: &mut Command) -> Outcome {
        let output = command.output().expect("the binary under test starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}
