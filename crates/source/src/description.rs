//! What a commit says of itself.

use jiff::Timestamp;

use crate::references::{Commit, References};

/// Longest message that is told.
const LONGEST: usize = 16 << 10;
/// Most tags that are told.
const MOST_TAGS: usize = 100;

/// What a commit says of itself, and which tags lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Who wrote it, as `Name <address>`.
    pub author: String,
    /// When it was written.
    pub date: Timestamp,
    /// Its message.
    pub message: String,
    /// Tags that lead to it.
    pub tags: Vec<String>,
}

impl Description {
    /// Reads a commit as git stores it: headers, an empty line, the message. What is missing is empty.
    pub(crate) fn read(raw: &[u8]) -> Description {
        let text = String::from_utf8_lossy(raw);
        let (headers, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let author = headers.lines().find_map(|line| line.strip_prefix("author ")).unwrap_or_default();
        // The name, then the second and the time zone.
        let (name, time) = match author.rfind("> ") {
            Some(at) => author.split_at(at + 1),
            None => (author, ""),
        };
        let second = time.split_whitespace().next().and_then(|second| second.parse().ok()).unwrap_or(0);
        let mut message = message.trim_end().to_owned();
        message.truncate(message.floor_char_boundary(LONGEST));
        Description {
            author: name.chars().filter(|c| !c.is_control()).take(500).collect(),
            date: Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH),
            message,
            tags: Vec::new(),
        }
    }

    pub(crate) fn tagged(self, references: &References, commit: Commit) -> Description {
        Description { tags: references.tags_of(commit).take(MOST_TAGS).map(str::to_owned).collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_git_stores_it() {
        let raw = b"tree 1\nparent 2\nauthor Ann Lee <ann@example.com> 1767225600 +0100\n\
            committer Bob <b@c> 1 +0000\ngpgsig -----BEGIN\n more\n\nShip it\n\nAnd more.\n";
        let told = Description::read(raw);
        assert_eq!(
            (told.author.as_str(), told.message.as_str()),
            ("Ann Lee <ann@example.com>", "Ship it\n\nAnd more.")
        );
        assert_eq!(told.date.to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn no_commit_makes_it_fail() {
        for raw in [&b""[..], b"author", b"author x", b"author <> 99999999999999999999 x\n\n\xff", b"\n\n"] {
            let _ = Description::read(raw);
        }
        let long = format!("author a <b> 1 +0\n\n{}", "ö".repeat(LONGEST));
        assert!(Description::read(long.as_bytes()).message.len() <= LONGEST);
    }
}
