//! The mark a rollout leaves on an Application with every write.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::pin::Fingerprint;

/// Whose write it was: of which set and run, which of all writes to this Application, and for which pin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// UID of the set.
    pub set: Arc<str>,
    /// Number of the run.
    pub run: u64,
    /// Number of the write, growing for ever per Application.
    pub n: u64,
    /// Hash of the pin.
    pub pin: Fingerprint,
}

impl Stamp {
    /// Names the comparison that a write asks for.
    pub fn nonce(&self) -> String {
        format!("{}-{}", self.run, self.n)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.set, self.run, self.n, self.pin)
    }
}

impl FromStr for Stamp {
    type Err = ();

    fn from_str(text: &str) -> Result<Stamp, ()> {
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or(());
        let (set, run, n, pin) = (part()?, part()?, part()?, part()?);
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(drop),
            false => Err(()),
        };
        let stamp = Stamp { set: set.into(), run: number(run)?, n: number(n)?, pin: pin.parse()? };
        match parts.next() {
            None if !set.is_empty() => Ok(stamp),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_is_written() {
        let stamp = Stamp { set: "uid".into(), run: 3, n: 7, pin: Fingerprint::of(["x"]) };
        assert_eq!(stamp.to_string().parse(), Ok(stamp));
        for broken in
            ["", "a/b/c/d", "/1/1/0000000000000000", "u/1/+1/0000000000000000", "u/1/1/0000000000000000/"]
        {
            assert_eq!(broken.parse::<Stamp>(), Err(()), "{broken}");
        }
    }
}
