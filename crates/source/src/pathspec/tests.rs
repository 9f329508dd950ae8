use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// What the installed git lists for each pattern: the oracle. `None` where git refuses the pattern.
struct Oracle(tempfile::TempDir);

impl Oracle {
    fn new(files: &[&str]) -> Oracle {
        let directory = tempfile::tempdir().expect("a directory");
        let oracle = Oracle(directory);
        assert!(oracle.git(&["init", "-q"]).status().expect("git runs").success());
        let mut index =
            oracle.git(&["update-index", "--index-info"]).stdin(Stdio::piped()).spawn().expect("git runs");
        let mut input = index.stdin.take().expect("piped");
        for file in files {
            let object = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
            writeln!(input, "100644 {object}\t{file}").expect("written");
        }
        drop(input);
        assert!(index.wait().expect("git ends").success());
        oracle
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.0.path());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    fn list(&self, pattern: &str) -> Option<Vec<String>> {
        let output = self.git(&["ls-files", "--full-name", "-z", "--", pattern]).output().expect("git runs");
        let text = String::from_utf8(output.stdout).expect("names are UTF-8");
        let names = text.split_terminator('\0').map(str::to_owned).collect();
        output.status.success().then_some(names)
    }
}

const FILES: [&str; 22] = [
    ".hidden/x.yaml",
    "A/Upper.YAML",
    "README.md",
    "a",
    "a[1]/b.json",
    "a1/b.json",
    "apps/a/config.json",
    "apps/a/deep/er/config.json",
    "apps/b/config.json",
    "apps/b/values.yaml",
    "apps/config.json",
    "apps-b/config.json",
    "cluster-config/engineering/dev/config.json",
    "cluster-config/engineering/prod/config.json",
    "cluster-config/top.json",
    "config.json",
    "dash-name",
    "file?.txt",
    "fileX.txt",
    "star*.txt",
    "ä/ö.yaml",
    "z]/b",
];

const PATTERNS: [&str; 87] = [
    "*",
    "**",
    ".",
    "./",
    "./apps",
    "apps",
    "apps/",
    "apps/*",
    "apps/**",
    "apps/*/config.json",
    "**/config.json",
    "*config.json",
    "config.json",
    "*.json",
    "apps/?/config.json",
    "apps/[ab]/config.json",
    "apps/[!a]/config.json",
    "apps/[^a]/*",
    "app?",
    "ap*s",
    "a",
    "a/",
    "a[1]",
    "a[1]/b.json",
    "a?/b.json",
    "apps/a/../b",
    "apps//a",
    "../x",
    "..",
    "/apps",
    "apps/..",
    "cluster-config/**/config.json",
    "cluster-config/*.json",
    "file?.txt",
    "file\\?.txt",
    "star\\*.txt",
    "star[*].txt",
    "[[:upper:]]*",
    "[[:alpha:]]/b",
    "[]]",
    "z[]]/b",
    "z[]-a]/b",
    "[a",
    "a\\",
    "[[:nope:]]*",
    "[a-c]*",
    "[c-a]*",
    "[a-]*",
    "*[!/]json",
    "ä",
    "ä/*",
    "?/ö.yaml",
    "??/ö.yaml",
    ":(glob)**/config.json",
    ":(glob)apps/*",
    ":(glob)apps/*/config.json",
    ":(glob)apps/**",
    ":(glob)apps/**/config.json",
    ":(glob)**",
    ":(glob)*",
    ":(glob)?pps/a/config.json",
    ":(icase)a/upper.yaml",
    ":(icase)*.yaml",
    ":(literal)star*.txt",
    ":(literal)file?.txt",
    ":(exclude)apps",
    ":!apps",
    ":^*.json",
    ":/apps",
    ":(top)apps/a",
    ":",
    ":apps",
    "::apps",
    ":(glob,icase)**/UPPER.yaml",
    ":/.",
    ":!/.",
    ":/!apps/",
    ":/./apps",
    ":!.",
    ":(top)",
    ":(top)apps//a",
    ":(top)../x",
    ":(top)/apps",
    ":(top,glob)apps/*/config.json",
    ":(top,exclude)apps/..",
    ":(nonsense)x",
    ":(glob,literal)x",
];

#[test]
fn patterns_name_the_files_git_lists() {
    let oracle = Oracle::new(&FILES);
    for pattern in PATTERNS {
        let ours = Pathspec::new(pattern).ok().map(|spec| listed(&spec));
        assert_eq!(ours, oracle.list(pattern), "{pattern}");
    }
}

fn listed(spec: &Pathspec) -> Vec<String> {
    let mut files = FILES;
    files.sort_unstable();
    files.iter().filter(|file| spec.matches(file)).map(|file| (*file).to_owned()).collect()
}

#[test]
fn attributes_are_refused_and_nothing_at_all_names_everything() {
    assert!(Pathspec::new(":(attr:x)a").is_err());
    assert!(Pathspec::new(&"a".repeat(MAX_PATTERN + 1)).is_err());
    assert_eq!(listed(&Pathspec::new("").expect("everything")).len(), FILES.len());
}

#[test]
fn a_pattern_of_many_stars_takes_no_longer_than_its_name() {
    let spec = Pathspec::new(&format!("{}b", "*a".repeat(1000))).expect("a pattern");
    assert!(!spec.matches(&"a".repeat(4000)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn any_pattern_names_the_files_git_lists(pattern in "(:\\(glob\\)|:\\(icase\\)|:\\(top\\)|:!|:/)?[a-c*?\\[\\]/.!^\\\\-]{1,8}") {
        let files = ["a", "a.b", "b/a", "b/b", "b/c/a", "c/a", "c/b/b/a", "c-", "a]", "c/[/b", "b/!a", "b/^"];
        thread_local!(static ORACLE: std::cell::OnceCell<Oracle> = const { std::cell::OnceCell::new() });
        let expected = ORACLE.with(|cell| cell.get_or_init(|| Oracle::new(&files)).list(&pattern));
        let mut sorted = files;
        sorted.sort_unstable();
        let ours = Pathspec::new(&pattern).ok().map(|spec| {
            sorted.iter().filter(|file| spec.matches(file)).map(|file| (*file).to_owned()).collect::<Vec<_>>()
        });
        prop_assert_eq!(ours, expected);
    }

    #[test]
    fn no_pattern_or_name_panics(pattern in "\\PC{0,40}", name in "\\PC{0,40}") {
        if let Ok(spec) = Pathspec::new(&pattern) {
            spec.matches(&name);
        }
    }
}
