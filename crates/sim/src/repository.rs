//! The git repository of a world: every commit is made ahead, and a push moves the branch.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// URL under which the world knows it.
pub(crate) const URL: &str = "https://git.example.com/fleet.git";
/// Its branch.
pub(crate) const BRANCH: &str = "main";

/// One commit: every file with its text.
pub(crate) type Files = Vec<(String, String)>;

/// A repository on disk.
pub(crate) struct Repository {
    directory: TempDir,
    commits: Vec<String>,
}

impl Repository {
    /// A repository in which the first of these commits was pushed.
    pub(crate) fn new(commits: &[Files]) -> std::io::Result<Repository> {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        for sub in ["objects/pack", "refs/heads", "refs/tags"] {
            std::fs::create_dir_all(root.join(sub))?;
        }
        std::fs::write(root.join("HEAD"), format!("ref: refs/heads/{BRANCH}\n"))?;
        std::fs::write(root.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        let commits = import(root, commits)?;
        let repository = Repository { directory, commits };
        repository.push(0)?;
        Ok(repository)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Ids of all commits, pushed or not.
    pub(crate) fn commits(&self) -> &[String] {
        &self.commits
    }

    /// Moves the branch to a commit.
    pub(crate) fn push(&self, commit: usize) -> std::io::Result<()> {
        let reference = self.path().join("refs/heads").join(BRANCH);
        let next = reference.with_extension("lock");
        std::fs::write(&next, format!("{}\n", self.commits[commit]))?;
        std::fs::rename(next, reference)
    }
}

fn import(root: &Path, commits: &[Files]) -> std::io::Result<Vec<String>> {
    let mut child = Command::new("git")
        .args(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--date-format=raw"])
        .current_dir(root)
        .env("GIT_DIR", root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = stream(commits);
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let ids: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    match output.status.success() && ids.len() == commits.len() {
        true => Ok(ids),
        false => Err(std::io::Error::other(format!("git fast-import: {}", output.status))),
    }
}

/// The commits as `git fast-import` reads them; it tells each one's id.
fn stream(commits: &[Files]) -> String {
    let mut text = String::new();
    for (number, files) in commits.iter().enumerate() {
        let time = 1_760_000_000 + number;
        let mark = number + 1;
        let _ = write!(
            text,
            "commit refs/made/all\nmark :{mark}\ncommitter Sim <sim@example.com> {time} +0000\ndata 6\nchange\n"
        );
        if number > 0 {
            let _ = writeln!(text, "from :{number}");
        }
        text.push_str("deleteall\n");
        for (path, content) in files {
            let _ = writeln!(text, "M 644 inline {path}\ndata {}\n{content}", content.len());
        }
        let _ = writeln!(text, "\nget-mark :{mark}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_made_ahead_and_pushed_one_by_one() {
        let file = |text: &str| vec![("app/file.yaml".to_owned(), text.to_owned())];
        let repository = Repository::new(&[file("one"), file("two")]).expect("a repository");
        let shown = || {
            let output = Command::new("git")
                .args(["show", "main:app/file.yaml"])
                .current_dir(repository.path())
                .output()
                .expect("git runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(shown(), "one");
        repository.push(1).expect("a push");
        assert_eq!(shown(), "two");
        let again = Repository::new(&[file("one"), file("two")]).expect("a repository");
        assert_eq!(again.commits(), repository.commits(), "ids depend on nothing but the content");
    }
}
