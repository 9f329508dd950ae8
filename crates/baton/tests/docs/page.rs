//! A page as whoever follows it reads it: commands, what they show, and what is said of their end.

/// What whoever follows a page does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Where it stands, counted from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// What the page shows of the output; `…` stands for anything, alone on a line for any lines.
    pub(crate) shown: Vec<String>,
    /// The exit code that the page tells of: `# … exit code 4`.
    pub(crate) code: i32,
    /// Whether only the tests do it: `<!-- in tests: … -->`.
    pub(crate) hidden: bool,
}

/// The commands of a page: in `console` blocks after `$`, in `sh` blocks every line.
pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block = None;
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let start = |command: &str, hidden| Step {
            line: at + 1,
            command: command.to_owned(),
            shown: Vec::new(),
            code: 0,
            hidden,
        };
        if let Some(kind) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind) };
            continue;
        }
        let command = match block {
            None => {
                let hidden = line.strip_prefix("<!-- in tests: ").and_then(|rest| rest.strip_suffix(" -->"));
                steps.extend(hidden.map(|command| start(command, true)));
                continue;
            }
            Some("console") => line.strip_prefix("$ "),
            Some("sh") if line.is_empty() || line.starts_with('#') => continue,
            Some("sh") => Some(line),
            Some(_) => continue,
        };
        match (command, steps.last_mut()) {
            (_, Some(last)) if goes_on => last.command.push_str(&format!("\n{line}")),
            (Some(command), _) => steps.push(start(command, false)),
            (None, Some(last)) => last.shown.push(line.to_owned()),
            (None, None) => panic!("line {}: output without a command", at + 1),
        }
        goes_on = line.ends_with('\\');
    }
    for step in &mut steps {
        step.code = told_code(&step.command);
    }
    steps
}

fn told_code(command: &str) -> i32 {
    let Some((_, code)) = command.rsplit_once("exit code ") else { return 0 };
    let digits = code.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("no exit code in {command}"))
}

/// Whether an output is as shown. How many spaces divide words does not matter: columns are as wide as what is in them.
pub(crate) fn is_as_shown(shown: &[String], output: &str) -> bool {
    let lines: Vec<String> = output.lines().map(single_spaced).filter(|line| !line.is_empty()).collect();
    let shown: Vec<String> =
        shown.iter().map(|line| single_spaced(line)).filter(|line| !line.is_empty()).collect();
    lines_match(&shown, &lines)
}

fn lines_match(shown: &[String], lines: &[String]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((any, rest)) if any == "…" => {
            (0..=lines.len()).any(|passed| lines_match(rest, &lines[passed..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| matches(first, line) && lines_match(rest, others)),
    }
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is as shown, in which `…` stands for any text.
fn matches(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(end) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(end)
}

#[test]
fn a_page_is_read_as_a_reader_would() {
    let page = "Words.\n```console\n$ one \\\n    more   # exit code 4: so it is\nshown\n$ two\n```\n\
                <!-- in tests: three -->\n```sh\n# a remark\nfour\n```\n```yaml\n$ five\n```\n";
    let told = |line, command: &str, shown: &[&str], code, hidden| Step {
        line,
        command: command.to_owned(),
        shown: shown.iter().map(ToString::to_string).collect(),
        code,
        hidden,
    };
    let expected = [
        told(3, "one \\\n    more   # exit code 4: so it is", &["shown"], 4, false),
        told(6, "two", &[], 0, false),
        told(8, "three", &[], 0, true),
        told(11, "four", &[], 0, false),
    ];
    assert_eq!(steps(page), expected);
}

#[test]
fn output_is_held_against_what_is_shown() {
    let is = |shown: &str, output: &str| {
        is_as_shown(&shown.lines().map(str::to_owned).collect::<Vec<_>>(), output)
    };
    for (shown, output, same) in [
        ("a  b", "a b\n", true),
        ("a b", "a c", false),
        ("a", "a\nb", false),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("…\nb", "a\nb\nc", false),
        ("took … s, ended … ago", "took 3 s, ended 1s ago", true),
        ("took …, done", "took 3s", false),
        ("ab…ba", "aba", false),
        ("", "", true),
    ] {
        assert_eq!(is(shown, output), same, "{shown:?} and {output:?}");
    }
}
