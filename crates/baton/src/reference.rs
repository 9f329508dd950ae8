//! `docs/cli.md` tells of every command and flag, and only of those there are. Its first part is written by hand; what stands
//! below the mark is made of the command line: `BATON_WRITE_DOCS=1 cargo test -p baton --bin baton reference` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _, Parser as _};

use crate::Cli;

const PAGE: &str = include_str!("../../../docs/cli.md");
/// What divides the page.
const MARK: &str =
    "<!-- Made of the command line: BATON_WRITE_DOCS=1 cargo test -p baton --bin baton reference -->\n";
/// A flag that is the same in so many commands is told of once.
const MANY: usize = 8;

/// The whole command line, with the names by which commands are called.
fn command_line() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The commands that do something, in the order of the help.
fn commands(command: &Command) -> Vec<&Command> {
    match command.has_subcommands() {
        false => vec![command],
        true => {
            let below = command.get_subcommands().filter(|below| below.get_name() != "help");
            below.flat_map(commands).collect()
        }
    }
}

/// All words of a command but the first, which is `baton`.
fn words_of(command: &Command) -> &str {
    let name = command.get_bin_name().expect("the command line was built");
    name.strip_prefix("baton ").expect("every command is one of baton")
}

fn made() -> String {
    let root = command_line();
    let commands = commands(&root);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    commands
        .iter()
        .flat_map(|command| rows(command))
        .for_each(|(_, row)| *times.entry(row).or_default() += 1);
    let is_common = |row: &String| !row.starts_with("| `<") && times[row] >= MANY;

    let mut page = String::from("\n## Flags of many commands\n\n| flag | |\n|---|---|\n");
    let mut told = BTreeSet::new();
    for (_, row) in commands.iter().flat_map(|command| rows(command)) {
        if is_common(&row) && told.insert(row.clone()) {
            page.push_str(&row);
        }
    }
    page.push_str("\n## Every command\n");
    for command in commands {
        let usage = command.clone().render_usage().to_string();
        let about = command.get_long_about().or(command.get_about());
        let _ = write!(
            page,
            "\n### baton {}\n\n{}\n\n```text\n{}\n```\n",
            words_of(command),
            sentence(about),
            usage.trim_start_matches("Usage: ").trim()
        );
        let (common, own): (Vec<_>, Vec<_>) = rows(command).into_iter().partition(|(_, row)| is_common(row));
        if !own.is_empty() {
            page.push_str("\n| flag | |\n|---|---|\n");
            own.iter().for_each(|(_, row)| page.push_str(row));
        }
        if !common.is_empty() {
            let names: Vec<String> = common.into_iter().map(|(name, _)| format!("`{name}`")).collect();
            let _ = writeln!(page, "\nAs for [many](#flags-of-many-commands): {}.", names.join(", "));
        }
        if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
            let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim());
        }
    }
    page
}

/// The arguments of a command: each by its name, with its row of a table.
fn rows(command: &Command) -> Vec<(String, String)> {
    let shown = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
    command.get_arguments().filter(shown).map(row).collect()
}

fn row(argument: &Arg) -> (String, String) {
    let takes_value = argument.get_num_args().is_some_and(|number| number.takes_values());
    let short = argument.get_short().map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let name = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument.to_string(),
    };
    // clap writes a flag with its value in the way its help does.
    let written = format!("{short}{argument}").replace("...", "…");
    let mut text = sentence(argument.get_long_help().or(argument.get_help()));
    if takes_value {
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            let _ = write!(text, " One of {}.", values.join(", "));
        }
        let defaults: Vec<String> = argument
            .get_default_values()
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        if !defaults.is_empty() {
            let _ = write!(text, " Default: {}.", defaults.join(", "));
        }
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, " Environment: `{}`.", variable.to_string_lossy());
    }
    (name, format!("| `{}` | {} |\n", written.replace('|', "\\|"), text.trim().replace('|', "\\|")))
}

/// A text of the help, in which a sentence has no end of its own.
fn sentence(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;");
    // Some helps tell a default that clap does not know.
    let text = match text.strip_suffix(']').and_then(|text| text.split_once(" [default: ")) {
        Some((text, default)) => format!("{text}. Default: `{default}`"),
        None => text,
    };
    let ended = text.is_empty() || text.ends_with(['.', '?']);
    if ended { text } else { text + "." }
}

/// The examples of the part that is written by hand, each by its command.
fn examples() -> BTreeMap<String, String> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| [`")?.strip_suffix("` |"));
    let pairs = rows.filter_map(|row| row.split_once(") | `"));
    let pairs = pairs.map(|(link, example)| {
        let (command, place) = link.split_once("`](#").expect("a link to the command");
        assert_eq!(place, format!("baton-{}", command.replace(' ', "-")), "{command} leads elsewhere");
        (command.to_owned(), example.to_owned())
    });
    pairs.collect()
}

/// An example as a shell would hand it over.
fn words(example: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (at, part) in example.split('\'').enumerate() {
        let quoted = at % 2 == 1;
        for (at, piece) in part.split(' ').enumerate() {
            match (quoted, at) {
                (_, 0) => words.last_mut().expect("there is one").push_str(piece),
                (true, _) => words.last_mut().expect("there is one").push_str(&format!(" {piece}")),
                (false, _) => words.push(piece.to_owned()),
            }
        }
    }
    words
}

#[test]
fn every_command_and_flag_is_told_of() {
    let (by_hand, found) = PAGE.split_once(MARK).expect("the mark divides docs/cli.md");
    let made = made();
    if std::env::var_os("BATON_WRITE_DOCS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        std::fs::write(path, format!("{by_hand}{MARK}{made}")).expect("docs/cli.md can be written");
        return;
    }
    let differs = found.lines().zip(made.lines()).find(|(found, made)| found != made);
    assert!(
        found == made,
        "docs/cli.md is not as the command line is (first at {differs:?}): BATON_WRITE_DOCS=1 writes it anew"
    );
}

#[test]
fn no_command_and_no_flag_is_without_a_word() {
    let root = command_line();
    let commands = commands(&root);
    let mute = commands.iter().flat_map(|command| {
        let flags = command.get_arguments().filter(|argument| argument.get_help().is_none());
        let flags = flags.map(|argument| format!("{} {argument}", words_of(command)));
        flags.chain(command.get_about().is_none().then(|| words_of(command).to_owned()))
    });
    assert_eq!(mute.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_command_has_an_example_and_nothing_else_has() {
    let root = command_line();
    let all: BTreeSet<String> =
        commands(&root).into_iter().map(|command| words_of(command).to_owned()).collect();
    let told: BTreeSet<String> = examples().into_keys().collect();
    assert_eq!(all.difference(&told).collect::<Vec<_>>(), [""; 0], "docs/cli.md has no example of these");
    assert_eq!(told.difference(&all).collect::<Vec<_>>(), [""; 0], "docs/cli.md tells of what is not there");
}

#[test]
fn examples_are_understood() {
    assert_eq!(words("a 'b c' '' d"), ["a", "b c", "", "d"]);
    for (command, example) in examples() {
        assert!(example.starts_with(&format!("baton {command}")), "{example} is no example of {command}");
        if let Err(error) = Cli::try_parse_from(words(&example)) {
            panic!("{example}: {error}");
        }
    }
}
