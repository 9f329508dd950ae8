//! `baton completion`: what a shell needs to finish words.

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::print;

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(baton completion bash)
  baton completion zsh > ~/.zfunc/_baton
  baton completion fish > ~/.config/fish/completions/baton.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(arguments: &Arguments, command: Command) -> Result<(), Failure> {
    // A shell has room for every word, also for those that the overview has none for.
    let mut command = command.mut_subcommands(|one| one.hide(false));
    let shell = match arguments.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut command, "baton", &mut script);
    print::out(&String::from_utf8_lossy(&script))
}
