//! What a commit holds, as a checkout of it would show it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use baton_grammar::globs::doublestar;
use bytes::Bytes;

use crate::command::Refusal;
use crate::error::SourceError;
use crate::pathspec::Pathspec;
use crate::references::Commit;

/// Most links that are followed for one path, as Linux has it.
const MAX_HOPS: usize = 40;

/// Longest target of a link.
pub(crate) const MAX_TARGET: u64 = 4096;

/// The files and directories of a commit.
#[derive(Debug)]
pub struct Tree {
    commit: Commit,
    repository: String,
    /// Sorted by path, byte by byte.
    entries: Vec<Entry>,
    /// Every directory a checkout has, without the root, sorted.
    directories: BTreeSet<Box<str>>,
    include_hidden: bool,
    most: usize,
}

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    path: Box<str>,
    kind: Kind,
    object: Object,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link, and where it leads.
    Link(Box<str>),
    /// Another repository, of which nothing is read: an empty directory.
    Submodule,
}

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Object([u8; 20]);

impl Object {
    fn parse(digits: &[u8]) -> Option<Object> {
        let mut name = [0; 20];
        if digits.len() != 40 {
            return None;
        }
        for (byte, pair) in name.iter_mut().zip(digits.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Object(name))
    }

    /// The forty digits.
    pub(crate) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Entry {
    /// The path from the root, parts joined by `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What stands there.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}

/// Why a path gives no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Astray {
    /// Nothing is there.
    #[error("there is no such file")]
    Missing,
    /// The path, or a link on it, leads out of the repository.
    #[error("it is a link that leads out of the repository")]
    Outside,
    /// Links lead to one another.
    #[error("its links lead in a circle")]
    Loop,
    /// A directory is there.
    #[error("it is a directory")]
    Directory,
    /// Another repository is there.
    #[error("it is a submodule, and submodules are not read")]
    Submodule,
}

/// Where a path leads when links are followed.
#[derive(Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// To a file.
    File(&'a Entry),
    /// To a directory: its own path, no link on it; empty for the root.
    Directory(String),
}

impl Tree {
    /// Reads what `git ls-tree -r -z` prints. Links have no target yet.
    pub(crate) fn read_entries(
        output: &mut dyn Read,
        most: usize,
        path_bytes: usize,
    ) -> Result<Vec<Entry>, Refusal> {
        let mut output = BufReader::with_capacity(64 << 10, output);
        let mut entries = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let longest = path_bytes as u64 + 64;
            if output.by_ref().take(longest).read_until(0, &mut line)? == 0 {
                entries.sort_by(|a: &Entry, b: &Entry| a.path.cmp(&b.path));
                return Ok(entries);
            }
            if line.pop() != Some(0) {
                return Err(Refusal::Limit(format!("a path in its tree is longer than {path_bytes} bytes")));
            }
            if entries.len() == most {
                return Err(Refusal::Limit(format!("its tree has more than {most} entries")));
            }
            entries.extend(entry(&line)?);
        }
    }

    /// The objects that hold the targets of links, in the order of their paths.
    pub(crate) fn link_objects(entries: &[Entry]) -> Vec<Object> {
        let links = entries.iter().filter(|entry| matches!(entry.kind, Kind::Link(_)));
        links.map(|entry| entry.object).collect()
    }

    /// Says where links lead, in the order of their paths. A target that is not there or not UTF-8 leads nowhere.
    pub(crate) fn set_targets(entries: &mut [Entry], targets: &[Option<Bytes>]) {
        let links = entries.iter_mut().filter(|entry| matches!(entry.kind, Kind::Link(_)));
        for (entry, target) in links.zip(targets) {
            let target = target.as_deref().and_then(|target| std::str::from_utf8(target).ok());
            entry.kind = Kind::Link(target.unwrap_or_default().into());
        }
    }

    pub(crate) fn new(
        repository: &str,
        commit: Commit,
        entries: Vec<Entry>,
        include_hidden: bool,
        most: usize,
    ) -> Tree {
        let mut directories: BTreeSet<Box<str>> = BTreeSet::new();
        for entry in &entries {
            let own = matches!(entry.kind, Kind::Submodule).then_some(entry.path.len());
            let above = entry.path.match_indices('/').map(|(at, _)| at);
            // From the longest on: what is above a known directory is known.
            for end in above.chain(own).collect::<Vec<_>>().into_iter().rev() {
                if directories.contains(&entry.path[..end]) {
                    break;
                }
                directories.insert(entry.path[..end].into());
            }
        }
        Tree { commit, repository: repository.to_owned(), entries, directories, include_hidden, most }
    }

    /// The commit this is the tree of.
    pub fn commit(&self) -> Commit {
        self.commit
    }

    /// The directories, as a walk in order of names meets them, without the root. Those whose name begins with a dot
    /// are left out with all beneath them unless the settings say otherwise. A submodule is an empty directory.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        let is_hidden = |path: &str| path.split('/').any(|part| part.starts_with('.'));
        let mut shown: Vec<&str> = self.directories.iter().map(|path| &**path).collect();
        shown.retain(|path| self.include_hidden || !is_hidden(path));
        shown.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        shown.into_iter()
    }

    /// The files, links and submodules, in order of their paths.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The paths `git ls-files -- PATTERN` lists, without submodules.
    ///
    /// # Errors
    /// A pattern git would refuse, or one with magic that is not known here.
    pub fn files_like_pathspec(&self, pattern: &str) -> Result<Vec<String>, SourceError> {
        let pathspec = Pathspec::new(pattern)?;
        let named = self
            .entries
            .iter()
            .filter(|entry| !matches!(entry.kind, Kind::Submodule) && pathspec.matches(&entry.path));
        Ok(named.map(|entry| entry.path.to_string()).collect())
    }

    /// The paths of files a doublestar pattern matches in a checkout. Links to directories are followed; what lies
    /// outside the repository is left out, with a warning in the log.
    ///
    /// # Errors
    /// A pattern that is none or leads out of the repository; links that show one another over and over, beyond the limit on entries.
    pub fn files_like_doublestar(&self, pattern: &str) -> Result<Vec<String>, SourceError> {
        let refuse = |why: String| SourceError::Pattern { pattern: pattern.chars().take(200).collect(), why };
        let cleaned = cleaned(pattern).ok_or_else(|| refuse("it leads out of the repository".to_owned()))?;
        let glob = doublestar::Pattern::new(&cleaned).map_err(|fault| refuse(fault.to_string()))?;
        let mut found = BTreeSet::new();
        self.walk("", |path, astray| {
            if astray == Some(Astray::Outside) {
                let repository = &self.repository;
                tracing::warn!(repository, path, "a link leads out of the repository and is passed over");
            } else if glob.matches(path) {
                found.insert(path.to_owned());
            }
        })?;
        Ok(found.into_iter().collect())
    }

    /// Shows every path under a directory that leads to a file, directly or through links to directories; and those
    /// of links that lead to nothing, with the reason.
    ///
    /// # Errors
    /// Links that show one another over and over, beyond the limit on entries.
    pub fn walk(
        &self,
        directory: &str,
        mut visit: impl FnMut(&str, Option<Astray>),
    ) -> Result<(), SourceError> {
        let mut cost = 0;
        let start = Shown { directory: directory.to_owned(), through: None };
        let mut open = vec![(directory.to_owned(), Rc::new(start))];
        while let Some((seen_at, shown)) = open.pop() {
            for entry in self.beneath(&shown.directory) {
                let rest = entry.path[shown.directory.len()..].trim_start_matches('/');
                let path = if seen_at.is_empty() { rest.to_owned() } else { format!("{seen_at}/{rest}") };
                cost += 1 + path.len() / 256;
                if cost > self.most.saturating_mul(2) {
                    let why = format!("its links show more than {} files", self.most);
                    return Err(SourceError::Limit { repository: self.repository.clone(), why });
                }
                match &entry.kind {
                    Kind::File => visit(&path, None),
                    Kind::Submodule => {}
                    Kind::Link(_) => match self.place(&entry.path) {
                        Ok(Place::Directory(directory)) => {
                            if shown.may_show(&directory, &entry.path) {
                                open.push((path, Rc::new(Shown { directory, through: Some(shown.clone()) })));
                            }
                        }
                        Ok(Place::File(_)) => visit(&path, None),
                        Err(astray) => visit(&path, Some(astray)),
                    },
                }
            }
        }
        Ok(())
    }

    /// The files, links and submodules under a directory at any depth, in order of their paths.
    pub fn beneath(&self, directory: &str) -> impl Iterator<Item = &Entry> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let begin = self.entries.partition_point(|entry| *entry.path < *prefix);
        self.entries[begin..].iter().take_while(move |entry| entry.path.starts_with(&prefix))
    }

    /// The paths at which another tree differs, whatever is there.
    pub fn differences<'a>(&'a self, other: &'a Tree) -> impl Iterator<Item = &'a str> {
        let (mut ours, mut theirs) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let order = match (ours.peek(), theirs.peek()) {
                    (Some(our), Some(their)) => our.path.cmp(&their.path),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (None, None) => return None,
                };
                let our = if order.is_le() { ours.next() } else { None };
                let their = if order.is_ge() { theirs.next() } else { None };
                if our != their {
                    return our.or(their).map(Entry::path);
                }
            }
        })
    }

    /// The file a path leads to, following links.
    pub(crate) fn file(&self, path: &str) -> Result<Object, Astray> {
        match self.place(path)? {
            Place::File(entry) => Ok(entry.object),
            Place::Directory(path) => match self.entry(&path) {
                Some(_) => Err(Astray::Submodule),
                None => Err(Astray::Directory),
            },
        }
    }

    /// Where a path from the root leads, following links.
    ///
    /// # Errors
    /// It leads to nothing, out of the repository, or in a circle.
    pub fn place(&self, path: &str) -> Result<Place<'_>, Astray> {
        let mut ahead: Vec<&str> = path.rsplit('/').collect();
        let mut here: Vec<&str> = Vec::new();
        let mut hops = 0;
        while let Some(part) = ahead.pop() {
            match part {
                "" | "." => continue,
                ".." => {
                    here.pop().ok_or(Astray::Outside)?;
                    continue;
                }
                name => here.push(name),
            }
            let path = here.join("/");
            match self.entry(&path) {
                Some(Entry { kind: Kind::Link(target), .. }) => {
                    hops += 1;
                    if hops > MAX_HOPS {
                        return Err(Astray::Loop);
                    }
                    if target.starts_with('/') {
                        return Err(Astray::Outside);
                    }
                    if target.is_empty() {
                        return Err(Astray::Missing);
                    }
                    here.pop();
                    ahead.extend(target.rsplit('/'));
                }
                Some(entry @ Entry { kind: Kind::File, .. }) => {
                    return if ahead.is_empty() { Ok(Place::File(entry)) } else { Err(Astray::Missing) };
                }
                _ if self.directories.contains(path.as_str()) => {}
                _ => return Err(Astray::Missing),
            }
        }
        Ok(Place::Directory(here.join("/")))
    }

    fn entry(&self, path: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// How much memory this takes, in entries.
    pub(crate) fn weight(&self) -> usize {
        self.entries.len() + self.directories.len() + 1
    }
}

/// A directory that is being shown, and the one whose link led to it.
struct Shown {
    directory: String,
    through: Option<Rc<Shown>>,
}

impl Shown {
    /// Whether a link may be followed: a directory is not shown within itself, and not through too many links.
    fn may_show(&self, target: &str, link: &str) -> bool {
        let holds_link = target.is_empty() || link.starts_with(&format!("{target}/"));
        let chain = || std::iter::successors(Some(self), |shown| shown.through.as_deref());
        !holds_link && chain().count() <= MAX_HOPS && chain().all(|shown| shown.directory != target)
    }
}

/// Reads one line of `git ls-tree`. A name that is not UTF-8 can be no parameter: it is passed over.
fn entry(line: &[u8]) -> Result<Option<Entry>, Refusal> {
    let odd = || Refusal::Content("git listed a tree in a form that is not known".to_owned());
    let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(odd)?;
    let (head, path) = (&line[..tab], &line[tab + 1..]);
    let mut words = head.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (Some(mode), Some(_), Some(object)) = (words.next(), words.next(), words.next()) else {
        return Err(odd());
    };
    let object = Object::parse(object).ok_or_else(odd)?;
    let kind = match mode {
        b"120000" => Kind::Link("".into()),
        b"160000" => Kind::Submodule,
        _ => Kind::File,
    };
    let Ok(path) = std::str::from_utf8(path) else {
        tracing::warn!(path = %String::from_utf8_lossy(path), "a path that is not UTF-8 is passed over");
        return Ok(None);
    };
    let forbidden = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    if path.split('/').any(forbidden) {
        return Err(Refusal::Content(format!("{path:?} is no path a checkout may have")));
    }
    Ok(Some(Entry { path: path.into(), kind, object }))
}

/// The path without `.`, `..` and doubled slashes, as Go's `filepath.Join` makes it; `None` when it leads out.
fn cleaned(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
