//! Which files a pattern of git's names: what `git ls-files -- PATTERN` would list.
//!
//! A `*` crosses directories, and a pattern that names a directory names all beneath it. Of git's magic words
//! (`:(glob)…`) all are known but `attr`, which needs attributes that are not read here.

use crate::error::SourceError;

mod wildcard;

use wildcard::Wildcard;

/// Longest pattern that is read.
const MAX_PATTERN: usize = 2048;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pathspec {
    /// The names that match are those that are not asked for.
    exclude: bool,
    fold_case: bool,
    /// The pattern without its magic, taken letter by letter.
    literal: Vec<u8>,
    wildcard: Option<Wildcard>,
}

#[derive(Debug, Default)]
struct Magic {
    exclude: bool,
    fold_case: bool,
    literal: bool,
    glob: bool,
    /// Counted from the top of the repository: git takes such a path as it is written, `.` and doubled slashes too.
    top: bool,
}

impl Pathspec {
    /// Compiles a pattern; an empty one names everything, as Argo CD has it.
    pub(crate) fn new(pattern: &str) -> Result<Pathspec, SourceError> {
        let refuse = |why: &str| SourceError::Pattern {
            pattern: pattern.chars().take(200).collect(),
            why: why.to_owned(),
        };
        if pattern.len() > MAX_PATTERN {
            return Err(refuse("it is too long"));
        }
        if pattern.contains('\0') {
            return Err(refuse("it holds a NUL"));
        }
        let (magic, rest) = magic(pattern).map_err(|why| refuse(&why))?;
        let literal = if magic.top { Some(rest.to_owned()) } else { normalised(rest) };
        let literal = literal.ok_or_else(|| refuse("it leads out of the repository"))?;
        let is_wild = !magic.literal && literal.contains(['*', '?', '[', '\\']);
        let folded = if magic.fold_case { literal.to_ascii_lowercase() } else { literal };
        let wildcard = is_wild.then(|| Wildcard::new(folded.as_bytes(), magic.glob));
        Ok(Pathspec {
            exclude: magic.exclude,
            fold_case: magic.fold_case,
            literal: folded.into_bytes(),
            wildcard,
        })
    }

    /// Whether a file of that path is named.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let named = if self.fold_case {
            self.names(path.to_ascii_lowercase().as_bytes())
        } else {
            self.names(path.as_bytes())
        };
        named != self.exclude
    }

    fn names(&self, path: &[u8]) -> bool {
        let beneath = match path.strip_prefix(self.literal.as_slice()) {
            None => false,
            Some(rest) => {
                rest.is_empty()
                    || rest.starts_with(b"/")
                    || self.literal.is_empty()
                    || self.literal.ends_with(b"/")
            }
        };
        beneath || self.wildcard.as_ref().is_some_and(|wildcard| wildcard.matches(path))
    }
}

/// Splits `:(words)rest` and `:!rest` into what they say and the rest.
fn magic(pattern: &str) -> Result<(Magic, &str), String> {
    let mut magic = Magic::default();
    let Some(marked) = pattern.strip_prefix(':') else { return Ok((magic, pattern)) };
    if let Some(long) = marked.strip_prefix('(') {
        let (words, rest) = long.split_once(')').ok_or("its magic has no end")?;
        for word in words.split(',') {
            match word.trim() {
                "" => {}
                "top" => magic.top = true,
                "exclude" => magic.exclude = true,
                "icase" => magic.fold_case = true,
                "literal" => magic.literal = true,
                "glob" => magic.glob = true,
                other => return Err(format!("the magic {other:?} is not supported")),
            }
        }
        if magic.literal && magic.glob {
            return Err("it cannot be both literal and glob".to_owned());
        }
        return Ok((magic, rest));
    }
    let mut rest = marked;
    while let Some(sign) = rest.chars().next() {
        match sign {
            '/' => magic.top = true,
            '!' | '^' => magic.exclude = true,
            ':' => return Ok((magic, &rest[1..])),
            _ if sign.is_ascii_punctuation() && "\"#%&',-;<=>@_`~".contains(sign) => {
                return Err(format!("the magic {sign:?} is not supported"));
            }
            _ => break,
        }
        rest = &rest[sign.len_utf8()..];
    }
    Ok((magic, rest))
}

/// The path without `.`, `..` and doubled slashes; a final slash stays. `None` when it leads out.
fn normalised(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            other => parts.push(other),
        }
    }
    let mut joined = parts.join("/");
    if !joined.is_empty() && (path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..")) {
        joined.push('/');
    }
    Some(joined)
}

#[cfg(test)]
mod tests;
