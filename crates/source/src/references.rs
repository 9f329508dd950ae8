//! The references of a repository, and which commit a revision names.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use baton_grammar::semver::{Constraint, is_constraint};

use crate::command::Refusal;
use crate::error::SourceError;

/// Longest revision that is read.
const MAX_REVISION: usize = 1024;

/// Fewest digits that may stand for a commit, as Argo CD has it.
const SHORTEST: usize = 7;

/// The name of a commit: forty hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit([u8; 40]);

impl Commit {
    /// Reads the full name of a commit; digits in upper case are fine.
    pub fn parse(text: &str) -> Option<Commit> {
        let mut digits: [u8; 40] = text.as_bytes().try_into().ok()?;
        digits.make_ascii_lowercase();
        digits.iter().all(u8::is_ascii_hexdigit).then_some(Commit(digits))
    }

    /// The forty digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Commit({self})")
    }
}

/// What a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The commit.
    pub commit: Commit,
    /// The object of an annotated tag, which leads to the commit and which some report in its stead.
    pub tag: Option<Commit>,
}

/// What a repository lists: the name of every reference, and what it leads to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct References(BTreeMap<Box<str>, Target>);

/// The branches and tags of a repository, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Names {
    /// Its branches.
    pub branches: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// What a revision turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    Target(Target),
    /// The beginning of a commit's name, in lower case: which one is only known by looking at all commits.
    Abbreviated(String),
}

impl From<Commit> for Target {
    fn from(commit: Commit) -> Target {
        Target { commit, tag: None }
    }
}

impl References {
    /// Reads the lines of `git ls-remote` or `git show-ref`: a name of an object, a blank, a reference.
    pub(crate) fn read(output: &mut dyn Read, most: usize) -> Result<References, Refusal> {
        const MAX_LINE: u64 = 8192;
        let mut output = BufReader::new(output);
        let mut references = BTreeMap::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            if output.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(References(references));
            }
            if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE {
                return Err(Refusal::Limit("a reference has an overlong name".to_owned()));
            }
            // A reference whose name is not UTF-8 cannot be asked for, and git's own notes begin with "ref:".
            let Ok(text) = std::str::from_utf8(&line) else { continue };
            let Some((object, name)) = text.trim_end_matches('\n').split_once(['\t', ' ']) else { continue };
            let Some(commit) = Commit::parse(object) else {
                if object.len() == 64 {
                    return Err(Refusal::Content(
                        "repositories with SHA-256 names are not supported".to_owned(),
                    ));
                }
                continue;
            };
            // An annotated tag is followed by a line for what it leads to.
            let (name, peeled) = match name.strip_suffix("^{}") {
                Some(name) => (name, true),
                None => (name, false),
            };
            let before = references.get(name).filter(|_| peeled).map(|before: &Target| before.commit);
            let tag = before.filter(|object| *object != commit);
            references.insert(name.into(), Target { commit, tag });
            if references.len() > most {
                return Err(Refusal::Limit(format!("it has more than {most} references")));
            }
        }
    }

    /// The names of all branches and tags.
    pub(crate) fn names(&self) -> Names {
        let of = |place: &str| -> Vec<String> {
            self.0.keys().filter_map(|name| name.strip_prefix(place)).map(str::to_owned).collect()
        };
        Names { branches: of("refs/heads/"), tags: of("refs/tags/") }
    }

    /// The names of the tags that lead to a commit.
    pub(crate) fn tags_of(&self, commit: Commit) -> impl Iterator<Item = &str> {
        let leading = self.0.iter().filter(move |(_, target)| target.commit == commit);
        leading.filter_map(|(name, _)| name.strip_prefix("refs/tags/"))
    }

    /// Finds what a revision names, in Argo CD's order: a version range names the highest tag within it; else a
    /// reference of that name; else digits name a commit.
    ///
    /// A tag comes before a branch of the same name, as git has it (Argo CD takes either, by chance).
    ///
    /// Where a prefix of tags is stated, a range looks only at tags that carry it, and at what follows it in them.
    pub(crate) fn resolve(
        &self,
        repository: &str,
        revision: &str,
        tag_prefix: &str,
    ) -> Result<Resolved, SourceError> {
        let revision = if revision.is_empty() { "HEAD" } else { revision };
        let range = is_constraint(revision).then(|| Constraint::parse(revision).ok()).flatten();
        let named = |name| str::strip_prefix(name, "refs/tags/")?.strip_prefix(tag_prefix);
        let tags = || self.0.keys().filter_map(|name| named(name));
        let highest = range.as_ref().and_then(|range| range.highest(tags()));
        let by_name = || {
            ["", "refs/tags/", "refs/heads/", "refs/", "refs/remotes/"]
                .into_iter()
                .find_map(|place| self.0.get(format!("{place}{revision}").as_str()))
        };
        let tagged = highest.and_then(|tag| self.0.get(format!("refs/tags/{tag_prefix}{tag}").as_str()));
        if let Some(target) = tagged.or_else(by_name) {
            return Ok(Resolved::Target(*target));
        }
        if (SHORTEST..40).contains(&revision.len()) && revision.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Resolved::Abbreviated(revision.to_ascii_lowercase()));
        }
        let why = match revision {
            "HEAD" => "the repository has no commit on its default branch".to_owned(),
            _ if range.is_some() => format!("none of its {} tags is within that range", tags().count()),
            _ => "it has no branch, tag or other reference of that name".to_owned(),
        };
        Err(not_found(repository, revision, why))
    }
}

/// Refuses revisions that no reference can have, and gives the commit of those that name one in full.
pub(crate) fn check(repository: &str, revision: &str) -> Result<Option<Commit>, SourceError> {
    let refuse = |why| SourceError::Revision {
        repository: repository.to_owned(),
        revision: revision.chars().take(100).collect(),
        why,
    };
    if revision.len() > MAX_REVISION {
        return Err(refuse("it is too long"));
    }
    if revision.starts_with('-') {
        return Err(refuse("it begins with a dash"));
    }
    if revision.chars().any(char::is_control) {
        return Err(refuse("it holds a control character"));
    }
    Ok(Commit::parse(revision))
}

/// The error for a revision that is not there.
pub(crate) fn not_found(repository: &str, revision: &str, why: impl Into<String>) -> SourceError {
    SourceError::NotFound {
        repository: repository.to_owned(),
        revision: revision.to_owned(),
        why: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(of: char) -> String {
        of.to_string().repeat(40)
    }

    fn references() -> References {
        let lines: String = [
            ('a', "HEAD"),
            ('a', "refs/heads/main"),
            ('b', "refs/heads/both"),
            ('c', "refs/tags/both"),
            ('d', "refs/tags/v1.2.0"),
            ('e', "refs/tags/v1.2.0^{}"),
            ('f', "refs/tags/1.3.0"),
            ('1', "refs/tags/v2.0.0-rc.1"),
            ('2', "refs/pull/7/head"),
            ('3', "refs/heads/1.x"),
            ('4', "refs/heads/feature/a"),
            ('5', "refs/heads/abcdef1"),
        ]
        .iter()
        .map(|(object, name)| format!("{}\t{name}\n", digits(*object)))
        .collect();
        let with_note = format!("ref: refs/heads/main\tHEAD\n{lines}");
        References::read(&mut with_note.as_bytes(), 100).expect("these are references")
    }

    #[test]
    fn revisions_name_what_argo_cd_says_they_name() {
        let of = |revision: &str| match references().resolve("r", revision, "") {
            Ok(Resolved::Target(target)) => target.commit.as_str()[..1].to_owned(),
            Ok(Resolved::Abbreviated(text)) => format!("~{text}"),
            Err(_) => "none".to_owned(),
        };
        for (revision, expected) in [
            ("", "a"),
            ("HEAD", "a"),
            ("main", "a"),
            ("refs/heads/main", "a"),
            ("both", "c"),
            ("refs/heads/both", "b"),
            ("feature/a", "4"),
            ("v1.2.0", "e"),
            ("refs/tags/v1.2.0", "e"),
            ("1.2.0", "none"),
            ("1.*", "f"),
            ("1.x", "f"),
            ("^1.0.0", "f"),
            (">=1.0.0 <1.3.0", "e"),
            ("~1.2", "e"),
            ("*", "f"),
            (">=2.0.0-0", "1"),
            ("3.x", "none"),
            ("pull/7/head", "2"),
            ("abcdef1", "5"),
            ("ABCDEF2", "~abcdef2"),
            ("abcdef", "none"),
            ("nothing", "none"),
        ] {
            assert_eq!(of(revision), expected, "{revision}");
        }
    }

    #[test]
    fn the_object_of_an_annotated_tag_is_told_beside_its_commit() {
        let tag_of = |revision: &str| match references().resolve("r", revision, "") {
            Ok(Resolved::Target(target)) => target.tag.map(|tag| tag.as_str()[..1].to_owned()),
            _ => None,
        };
        assert_eq!(tag_of("v1.2.0").as_deref(), Some("d"));
        assert_eq!(tag_of("~1.2").as_deref(), Some("d"));
        assert_eq!(tag_of("1.3.0"), None, "a light tag is its commit");
        assert_eq!(tag_of("main"), None);
    }

    #[test]
    fn a_range_without_tags_still_names_a_branch() {
        let only = format!("{}\trefs/heads/1.x\n", digits('3'));
        let references = References::read(&mut only.as_bytes(), 10).expect("a reference");
        assert!(matches!(references.resolve("r", "1.x", ""), Ok(Resolved::Target(_))));
        let fault = references.resolve("https://x.org/a", "2.x", "").expect_err("no such tag").to_string();
        assert!(fault.contains("https://x.org/a") && fault.contains("2.x"), "{fault}");
    }

    #[test]
    fn hostile_listings_are_refused() {
        let many: String = (0..20).map(|n| format!("{}\trefs/heads/{n}\n", digits('a'))).collect();
        assert!(matches!(References::read(&mut many.as_bytes(), 10), Err(Refusal::Limit(_))));
        let long = format!("{}\trefs/heads/{}\n", digits('a'), "x".repeat(9000));
        assert!(matches!(References::read(&mut long.as_bytes(), 10), Err(Refusal::Limit(_))));
        let sha256 = format!("{}\tHEAD\n", "a".repeat(64));
        assert!(matches!(References::read(&mut sha256.as_bytes(), 10), Err(Refusal::Content(_))));
        let odd = b"\xff\xfe\tx\nno blank\n\n \n";
        assert_eq!(References::read(&mut &odd[..], 10).expect("nothing in it"), References::default());
    }

    #[test]
    fn revisions_that_could_be_options_are_refused() {
        for revision in ["--upload-pack=x", "-x", "a\nb", "a\0b", &"a".repeat(2000)] {
            assert!(check("r", revision).is_err(), "{revision:?}");
        }
        let commit = check("r", &digits('A')).expect("a full name").expect("a commit");
        assert_eq!(commit.as_str(), digits('a'));
        assert_eq!(check("r", "main").expect("a name"), None);
    }
}
