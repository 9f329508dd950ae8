//! The git repositories of a world: every commit is made ahead, and a push moves a branch.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A branch that Applications follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// URL of its repository.
    pub(crate) url: Cow<'static, str>,
    /// Its name there.
    pub(crate) name: Cow<'static, str>,
}

/// Every branch there is in a world that is drawn. The first is the one that most follow.
pub(crate) static BRANCHES: [Branch; 3] = [
    Branch::known("https://git.example.com/fleet.git", "main"),
    Branch::known("https://git.example.com/fleet.git", "release"),
    Branch::known("https://git.example.com/extra.git", "main"),
];

impl Branch {
    const fn known(url: &'static str, name: &'static str) -> Branch {
        Branch { url: Cow::Borrowed(url), name: Cow::Borrowed(name) }
    }
}

/// How much of a commit's id says which it is.
pub(crate) const SHORT: usize = 9;
/// From here on `git fast-import` knows tags, below commits.
const TAGS: usize = 1_000_000;

/// The repository whose objects all others share.
const ALL: &str = "all.git";

/// One commit: every file with its text.
pub(crate) type Files = Vec<(String, String)>;

/// All repositories, on disk.
pub(crate) struct Repositories {
    directory: TempDir,
    branches: Vec<Branch>,
    /// By branch, in order.
    commits: Vec<Vec<String>>,
    /// The tag that names each commit, where annotated tags that are moved stand in the place of branches.
    tags: Option<Vec<Vec<String>>>,
}

impl Repositories {
    /// Repositories in which the first of each branch's commits was pushed. `tagged` makes annotated tags of all branches.
    pub(crate) fn new(
        branches: &[Branch],
        made: &[Vec<Files>],
        tagged: bool,
    ) -> std::io::Result<Repositories> {
        let directory = tempfile::tempdir()?;
        // All share their objects, so that one process makes them all.
        let all = directory.path().join(ALL);
        bare(&all)?;
        std::fs::create_dir_all(all.join("objects/pack"))?;
        let (commits, tags) = import(&all, made, tagged)?;
        let repositories = Repositories { directory, branches: branches.to_vec(), commits, tags };
        for branch in branches {
            let root = repositories.path(&branch.url);
            if !root.exists() {
                bare(&root)?;
                std::os::unix::fs::symlink(all.join("objects"), root.join("objects"))?;
            }
        }
        for branch in 0..repositories.commits.len() {
            repositories.push(branch, 0)?;
        }
        Ok(repositories)
    }

    /// Where all of them are.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Every branch.
    pub(crate) fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Where the repository of a URL is.
    pub(crate) fn path(&self, url: &str) -> PathBuf {
        self.directory.path().join(url.rsplit('/').next().unwrap_or_default())
    }

    /// Where the mirror of the repository of a URL is: the same objects, and branches that are moved on their own.
    pub(crate) fn mirror(&self, url: &str) -> PathBuf {
        self.path(url).with_extension("mirror")
    }

    /// Makes mirrors of all repositories as they are.
    pub(crate) fn mirrored(&self) -> std::io::Result<()> {
        let objects = self.directory.path().join(ALL).join("objects");
        for branch in &self.branches {
            let (root, mirror) = (self.path(&branch.url), self.mirror(&branch.url));
            if !mirror.exists() {
                std::fs::create_dir_all(mirror.join("refs/heads"))?;
                std::fs::create_dir_all(mirror.join("refs/tags"))?;
                // Not those of the repository: where that is away, its mirror is not.
                std::os::unix::fs::symlink(&objects, mirror.join("objects"))?;
                for file in ["HEAD", "config"] {
                    std::fs::copy(root.join(file), mirror.join(file))?;
                }
            }
            let reference = self.reference(&branch.name);
            std::fs::copy(root.join(&reference), mirror.join(reference))?;
        }
        Ok(())
    }

    /// Where a controller may keep what it fetched.
    pub(crate) fn cache(&self, of: &str) -> PathBuf {
        self.directory.path().join("cache").join(of)
    }

    /// Ids of all commits of a branch, pushed or not.
    pub(crate) fn commits(&self, branch: usize) -> &[String] {
        self.commits.get(branch).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a branch points to: a commit, or the tag of one.
    pub(crate) fn tip(&self, root: &Path, branch: &str) -> std::io::Result<String> {
        let text = std::fs::read_to_string(root.join(self.reference(branch)))?;
        Ok(text.trim().to_owned())
    }

    /// Whether annotated tags stand in the place of branches.
    pub(crate) fn are_tagged(&self) -> bool {
        self.tags.is_some()
    }

    /// What else may be said for a commit: its tag, and the beginning of its id.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        let tags = self.tags.iter().flatten().flatten().map(String::as_str);
        let commits = || self.commits.iter().flatten().map(String::as_str);
        let short = commits().map(|commit| (&commit[..SHORT], commit));
        tags.zip(commits()).chain(short.filter(|_| self.are_tagged()))
    }

    fn reference(&self, branch: &str) -> PathBuf {
        Path::new(if self.are_tagged() { "refs/tags" } else { "refs/heads" }).join(branch)
    }

    /// Moves a branch to a commit.
    pub(crate) fn push(&self, branch: usize, commit: usize) -> std::io::Result<()> {
        let mut root = self.path(&self.branches[branch].url);
        if !root.exists() {
            root = away(&root);
        }
        self.point(&root, branch, commit)
    }

    /// Moves a branch of the mirrors to a commit.
    pub(crate) fn push_on(&self, branch: usize, commit: usize) -> std::io::Result<()> {
        self.point(&self.mirror(&self.branches[branch].url), branch, commit)
    }

    fn point(&self, root: &Path, branch: usize, commit: usize) -> std::io::Result<()> {
        let reference = root.join(self.reference(&self.branches[branch].name));
        let next = reference.with_extension("lock");
        let named = self.tags.as_ref().unwrap_or(&self.commits);
        std::fs::write(&next, format!("{}\n", named[branch][commit]))?;
        std::fs::rename(next, reference)
    }

    /// Takes a repository away, or brings it back. Tells whether that changed anything.
    pub(crate) fn set_away(&self, url: &str, is_away: bool) -> bool {
        let root = self.path(url);
        let away = away(&root);
        match is_away {
            true => std::fs::rename(root, away).is_ok(),
            false => std::fs::rename(away, root).is_ok(),
        }
    }
}

fn away(root: &Path) -> PathBuf {
    root.with_extension("away")
}

/// Makes a bare repository but for its objects.
fn bare(root: &Path) -> std::io::Result<()> {
    for sub in ["refs/heads", "refs/tags"] {
        std::fs::create_dir_all(root.join(sub))?;
    }
    std::fs::write(root.join("HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(root.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
}

/// By branch, ids in order.
type Ids = Vec<Vec<String>>;

/// Makes the commits of all branches, and tells their ids, and those of their tags.
fn import(root: &Path, branches: &[Vec<Files>], tagged: bool) -> std::io::Result<(Ids, Option<Ids>)> {
    let mut child = Command::new("git")
        // Nobody needs a world after its machine went down.
        .args(["-c", "fastimport.unpackLimit=0", "-c", "core.fsync=none"])
        .args(["fast-import", "--quiet", "--date-format=raw"])
        .current_dir(root)
        .env("GIT_DIR", root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input: String =
        branches.iter().enumerate().map(|(branch, commits)| stream(branch, commits, tagged)).collect();
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let ids = String::from_utf8(output.stdout).unwrap_or_default();
    let ids: Vec<&str> = ids.lines().collect();
    let each = if tagged { 2 } else { 1 };
    if !output.status.success() || ids.len() != each * branches.iter().map(Vec::len).sum::<usize>() {
        return Err(std::io::Error::other(format!("git fast-import: {}", output.status)));
    }
    let every = |of: usize| {
        let mut ids = ids.iter().skip(of).step_by(each).map(|id| (*id).to_owned());
        branches.iter().map(|commits| ids.by_ref().take(commits.len()).collect()).collect()
    };
    Ok((every(0), tagged.then(|| every(1))))
}

/// The commits of a branch as `git fast-import` reads them, each with its tag where there are tags; it tells their ids.
fn stream(branch: usize, commits: &[Files], tagged: bool) -> String {
    let mut text = String::new();
    for (number, files) in commits.iter().enumerate() {
        let time = 1_760_000_000 + number;
        let mark = number + 1;
        let _ = write!(
            text,
            "commit refs/made/{branch}\nmark :{mark}\ncommitter Sim <sim@example.com> {time} +0000\ndata 6\nchange\n"
        );
        if number > 0 {
            let _ = writeln!(text, "from :{number}");
        }
        text.push_str("deleteall\n");
        for (path, content) in files {
            let _ = writeln!(text, "M 644 inline {path}\ndata {}\n{content}", content.len());
        }
        let _ = writeln!(text, "\nget-mark :{mark}");
        if tagged {
            let _ = write!(
                text,
                "tag made/{branch}/{number}\nmark :{0}\nfrom :{mark}\ntagger Sim <sim@example.com> {time} +0000\n\
                 data 3\ntag\nget-mark :{0}\n",
                TAGS + mark
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_made_ahead_and_pushed_one_by_one() {
        let file = |text: &str| vec![("app/file.yaml".to_owned(), text.to_owned())];
        let made = [vec![file("one"), file("two")], vec![file("other")]];
        let repositories = Repositories::new(&BRANCHES, &made, false).expect("repositories");
        let root = repositories.path(&BRANCHES[0].url);
        let shown = |branch: &str| {
            let output = Command::new("git")
                .args(["show", &format!("{branch}:app/file.yaml")])
                .current_dir(&root)
                .output()
                .expect("git runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!((shown("main"), shown("release")), ("one".to_owned(), "other".to_owned()));
        assert!(repositories.set_away(&BRANCHES[0].url, true) && !root.exists());
        repositories.push(0, 1).expect("a push");
        assert!(repositories.set_away(&BRANCHES[0].url, false));
        assert_eq!((shown("main"), shown("release")), ("two".to_owned(), "other".to_owned()));
        let again = Repositories::new(&BRANCHES, &made, true).expect("repositories");
        assert_eq!(again.commits(0), repositories.commits(0), "ids depend on nothing but the content");
    }

    #[test]
    fn annotated_tags_are_moved_where_they_stand_in_the_place_of_branches() {
        let file = |text: &str| vec![("app/file.yaml".to_owned(), text.to_owned())];
        let made = [vec![file("one"), file("two")], vec![file("other")]];
        let repositories = Repositories::new(&BRANCHES, &made, true).expect("repositories");
        let root = repositories.path(&BRANCHES[0].url);
        let tell = |arguments: &[&str]| {
            let output = Command::new("git").args(arguments).current_dir(&root).output().expect("git runs");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        repositories.push(0, 1).expect("a push");
        let tag = repositories.tip(&root, "main").expect("a tag");
        assert_eq!(tell(&["cat-file", "-t", "main"]), "tag");
        assert_eq!(tell(&["rev-parse", "main"]), tag);
        let second = &repositories.commits(0)[1];
        assert_eq!(tell(&["rev-parse", "main^{commit}"]), *second);
        let named: Vec<&str> =
            repositories.aliases().filter(|(_, commit)| commit == second).map(|(alias, _)| alias).collect();
        assert_eq!(named, [&*tag, &second[..SHORT]]);
    }
}
