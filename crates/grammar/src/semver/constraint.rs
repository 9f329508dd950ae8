//! Ranges of versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::version::{Version, compare_prereleases, is_identifiers};

/// Alternatives (`||`) of comparisons that must all hold.
#[derive(Debug, Clone)]
pub struct Constraint {
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone)]
struct Alternative {
    comparisons: Vec<Comparison>,
    /// One of the comparisons names a prerelease; else prereleases do not match at all.
    prereleases: bool,
}

#[derive(Debug, Clone)]
struct Comparison {
    operator: Operator,
    /// What was given, zeros for what was not.
    version: Version,
    given: Given,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// How much of a version a comparison states; the rest is missing or an `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Nothing,
    Major,
    Minor,
    All,
}

/// Why a text is no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// It does not look like one.
    #[error("improper constraint: {0}")]
    Shape(String),
    /// A version in it has the look of one but is none.
    #[error("constraint parser error")]
    Version,
}

/// Longer operators first: the first that fits is taken.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

/// A longer constraint is refused: read, it takes many times the memory.
const MAX_LENGTH: usize = 4096;

const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// When the text is none; an empty one is none.
    pub fn parse(text: &str) -> Result<Constraint, ConstraintError> {
        if text.len() > MAX_LENGTH {
            let shown: String = text.chars().take(80).collect();
            return Err(ConstraintError::Shape(format!("{shown}… ({} bytes)", text.len())));
        }
        let alternatives = text.split("||").map(alternative).collect::<Result<_, _>>()?;
        Ok(Constraint { alternatives })
    }

    /// Whether a version is within the range. A prerelease is only within alternatives that name one.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|alternative| {
            (version.prerelease.is_empty() || alternative.prereleases)
                && alternative.comparisons.iter().all(|comparison| comparison.holds(version))
        })
    }

    /// The tag with the highest matching version; the first of several of the same precedence. Tags that are no
    /// versions are passed over.
    pub fn highest<'t>(&self, tags: impl IntoIterator<Item = &'t str>) -> Option<&'t str> {
        let mut best: Option<(&str, Version)> = None;
        for tag in tags {
            let Ok(version) = Version::parse(tag) else { continue };
            let better = best.as_ref().is_none_or(|(_, best)| version.compare(best) == Ordering::Greater);
            if better && self.matches(&version) {
                best = Some((tag, version));
            }
        }
        best.map(|(tag, _)| tag)
    }
}

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Constraint, ConstraintError> {
        Constraint::parse(text)
    }
}

/// The comparisons with their operators in the standard spelling; ranges with a dash as two comparisons.
impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, alternative) in self.alternatives.iter().enumerate() {
            formatter.write_str(if index > 0 { " || " } else { "" })?;
            for (index, comparison) in alternative.comparisons.iter().enumerate() {
                formatter.write_str(if index > 0 { " " } else { "" })?;
                formatter.write_str(&comparison.text)?;
            }
        }
        Ok(())
    }
}

/// Comparisons and ranges (`1.0 - 2.0`) with blanks or commas between.
fn alternative(text: &str) -> Result<Alternative, ConstraintError> {
    let improper = || ConstraintError::Shape(text.to_owned());
    let mut comparisons = Vec::new();
    let mut rest = text.trim_matches(BLANKS);
    loop {
        let (operator, after) = operator(rest);
        let (version, after) = partial(after.trim_start_matches(BLANKS)).ok_or_else(improper)?;
        match upper_end(after).filter(|_| operator.is_none()) {
            Some((upper, after)) => {
                comparisons.push(comparison(Some((">=", Operator::GreaterOrEqual)), version)?);
                comparisons.push(comparison(Some(("<=", Operator::LessOrEqual)), upper)?);
                rest = after;
            }
            None => {
                comparisons.push(comparison(operator, version)?);
                rest = after;
            }
        }
        if rest.is_empty() {
            break;
        }
        let blank = rest.trim_start_matches(BLANKS);
        rest = match blank.strip_prefix(',') {
            Some(after) => after.trim_start_matches(BLANKS),
            None if blank.len() < rest.len() => blank,
            None => return Err(improper()),
        };
    }
    let prereleases = comparisons.iter().any(|comparison| !comparison.version.prerelease.is_empty());
    Ok(Alternative { comparisons, prereleases })
}

fn operator(text: &str) -> (Option<(&'static str, Operator)>, &str) {
    let fitting = OPERATORS.into_iter().find(|(sign, _)| text.starts_with(sign));
    (fitting, &text[fitting.map_or(0, |(sign, _)| sign.len())..])
}

/// The ` - 2.0` of a range.
fn upper_end(text: &str) -> Option<(&str, &str)> {
    let dash = text.strip_prefix(BLANKS)?.trim_start_matches(BLANKS).strip_prefix('-')?;
    partial(dash.strip_prefix(BLANKS)?.trim_start_matches(BLANKS))
}

/// A version with any part missing or an `x`, and the text after it. Whether its numbers are any is seen later.
fn partial(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| c == ',' || BLANKS.contains(&c)).unwrap_or(text.len());
    let (version, rest) = text.split_at(end);
    let (_, numbers, prerelease, metadata) = parts(version);
    let number = |number: &str| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|'))
    };
    let numbers: Vec<&str> = numbers.split('.').collect();
    let fits = numbers.len() <= 3
        && numbers.into_iter().all(number)
        && [prerelease, metadata].into_iter().flatten().all(is_identifiers);
    fits.then_some((version, rest))
}

/// The leading `v`, the numbers, the prerelease and the metadata.
fn parts(version: &str) -> (&str, &str, Option<&str>, Option<&str>) {
    let (prefix, rest) = version.split_at(usize::from(version.starts_with('v')));
    let (rest, metadata) = match rest.split_once('+') {
        Some((rest, metadata)) => (rest, Some(metadata)),
        None => (rest, None),
    };
    match rest.split_once('-') {
        Some((numbers, prerelease)) => (prefix, numbers, Some(prerelease), metadata),
        None => (prefix, rest, None, metadata),
    }
}

fn comparison(operator: Option<(&'static str, Operator)>, text: &str) -> Result<Comparison, ConstraintError> {
    let (sign, operator) = operator.unwrap_or(("", Operator::Equal));
    let (_, numbers, prerelease, _) = parts(text);
    let stated: Vec<&str> = numbers.split('.').take_while(|part| !matches!(*part, "x" | "X" | "*")).collect();
    let given = match stated.len() {
        0 => Given::Nothing,
        1 => Given::Major,
        2 => Given::Minor,
        _ => Given::All,
    };
    let numbers = if stated.is_empty() { "0".to_owned() } else { stated.join(".") };
    let suffix = prerelease.map(|prerelease| format!("-{prerelease}")).unwrap_or_default();
    let version = Version::parse(&(numbers + &suffix)).map_err(|_| ConstraintError::Version)?;
    Ok(Comparison { operator, version, given, text: format!("{sign}{text}") })
}

impl Comparison {
    fn holds(&self, version: &Version) -> bool {
        let bound = &self.version;
        let order = version.compare(bound);
        match self.operator {
            Operator::Equal if self.given == Given::All => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => order != Ordering::Less && self.within_tilde(version),
            Operator::NotEqual => self.differs(version),
            Operator::Greater => match self.given {
                Given::Major => version.major > bound.major,
                Given::Minor => (version.major, version.minor) > (bound.major, bound.minor),
                Given::Nothing | Given::All => order == Ordering::Greater,
            },
            Operator::Less => order == Ordering::Less,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::LessOrEqual => match self.given {
                Given::All => order != Ordering::Greater,
                Given::Major => version.major <= bound.major,
                Given::Minor | Given::Nothing => (version.major, version.minor) <= (bound.major, bound.minor),
            },
            Operator::Caret => order != Ordering::Less && self.within_caret(version),
        }
    }

    /// The same minor version, or the same major one if only that is given; any for zero.
    fn within_tilde(&self, version: &Version) -> bool {
        let bound = &self.version;
        let zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        match self.given {
            Given::Nothing | Given::All if zero => true,
            Given::Major => version.major == bound.major,
            _ => (version.major, version.minor) == (bound.major, bound.minor),
        }
    }

    /// The same leftmost number that is not zero.
    fn within_caret(&self, version: &Version) -> bool {
        let bound = &self.version;
        if bound.major > 0 || self.given == Given::Major {
            return version.major == bound.major;
        }
        if bound.minor > 0 || self.given == Given::Minor {
            return version.major == 0 && version.minor == bound.minor;
        }
        (version.major, version.minor, version.patch) == (0, 0, bound.patch)
    }

    fn differs(&self, version: &Version) -> bool {
        let bound = &self.version;
        match self.given {
            Given::Major => version.major != bound.major,
            Given::Minor if (version.major, version.minor) != (bound.major, bound.minor) => true,
            Given::Minor => compare_prereleases(&version.prerelease, &bound.prerelease) != Ordering::Equal,
            Given::Nothing | Given::All => version.compare(bound) != Ordering::Equal,
        }
    }
}
