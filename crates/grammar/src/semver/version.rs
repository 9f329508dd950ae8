//! Single versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version. Missing parts of a lenient text are zero.
///
/// Two versions may be of the same precedence and yet differ in build metadata; so there is [`Version::compare`], and
/// no order of the type.
#[derive(Debug, Clone)]
pub struct Version {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: u64,
    pub(super) prerelease: String,
    metadata: String,
    original: String,
}

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// It does not look like one.
    #[error("invalid semantic version")]
    Shape,
    /// A number of the prerelease starts with a zero.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// A number is too large.
    #[error("error parsing version segment: strconv.ParseUint: parsing \"{0}\": value out of range")]
    Number(String),
    /// Text with a character that no prerelease may hold.
    #[error("invalid prerelease string")]
    Prerelease,
    /// Text with a character that no build metadata may hold.
    #[error("invalid metadata string")]
    Metadata,
}

impl Version {
    /// Reads a version; a leading `v` and missing minor and patch numbers are fine.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Version, VersionError> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = match rest.split_once('+') {
            Some((rest, metadata)) => (rest, Some(metadata)),
            None => (rest, None),
        };
        let (numbers, prerelease) = match rest.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (rest, None),
        };
        if [prerelease, metadata].into_iter().flatten().any(|text| !is_identifiers(text)) {
            return Err(VersionError::Shape);
        }
        let numbers: Vec<&str> = numbers.split('.').collect();
        let is_number = |number: &&str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if numbers.len() > 3 || !numbers.iter().all(is_number) {
            return Err(VersionError::Shape);
        }
        let number = |index: usize| match numbers.get(index) {
            Some(digits) => digits.parse::<u64>().map_err(|_| VersionError::Number((*digits).to_owned())),
            None => Ok(0),
        };
        let (major, minor, patch) = (number(0)?, number(1)?, number(2)?);
        let prerelease = prerelease.unwrap_or_default();
        check_prerelease(prerelease)?;
        Ok(Version {
            major,
            minor,
            patch,
            prerelease: prerelease.to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// What stands after the dash; empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// What stands after the plus.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text the version was read from.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The order of precedence: build metadata does not count.
    pub fn compare(&self, other: &Version) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }

    /// The release a prerelease leads to, or the patch after a release.
    pub fn next_patch(&self) -> Version {
        let step = u64::from(self.prerelease.is_empty());
        self.derived(self.major, self.minor, self.patch.wrapping_add(step), "", "")
    }

    /// The first release of the next minor version.
    pub fn next_minor(&self) -> Version {
        self.derived(self.major, self.minor.wrapping_add(1), 0, "", "")
    }

    /// The first release of the next major version.
    pub fn next_major(&self) -> Version {
        self.derived(self.major.wrapping_add(1), 0, 0, "", "")
    }

    /// The version with another prerelease.
    ///
    /// # Errors
    /// When the text may not stand there.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Version, VersionError> {
        if !prerelease.is_empty() {
            check_prerelease(prerelease)?;
        }
        Ok(self.derived(self.major, self.minor, self.patch, prerelease, &self.metadata))
    }

    /// The version with other build metadata.
    ///
    /// # Errors
    /// When the text may not stand there.
    pub fn with_metadata(&self, metadata: &str) -> Result<Version, VersionError> {
        if !metadata.is_empty() && !is_identifiers(metadata) {
            return Err(VersionError::Metadata);
        }
        Ok(self.derived(self.major, self.minor, self.patch, &self.prerelease, metadata))
    }

    fn derived(&self, major: u64, minor: u64, patch: u64, prerelease: &str, metadata: &str) -> Version {
        let mut version = Version {
            major,
            minor,
            patch,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: String::new(),
        };
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        version.original = format!("{prefix}{version}");
        version
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Version, VersionError> {
        Version::parse(text)
    }
}

/// The full form without a leading `v`.
impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(formatter, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Dot-separated, none empty, of letters, digits and dashes.
pub(super) fn is_identifiers(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

fn check_prerelease(text: &str) -> Result<(), VersionError> {
    if text.is_empty() {
        return Ok(());
    }
    for part in text.split('.') {
        let numeric = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if numeric && part.len() > 1 && part.starts_with('0') {
            return Err(VersionError::LeadingZero);
        }
        if !is_identifiers(part) {
            return Err(VersionError::Prerelease);
        }
    }
    Ok(())
}

/// A release comes after its prereleases.
pub(super) fn compare_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            let mut right = right.split('.');
            for part in left.split('.') {
                let order = right.next().map_or(Ordering::Greater, |other| compare_parts(part, other));
                if order != Ordering::Equal {
                    return order;
                }
            }
            if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
        }
    }
}

/// Numbers come before other texts; a number too large to be one counts as text.
fn compare_parts(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}
