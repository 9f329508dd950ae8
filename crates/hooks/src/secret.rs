//! Texts that must not be seen, and taking them out of texts that are.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands where a secret was.
const MASK: &str = "[redacted]";

/// What programs encode of a part of a URL; some encode all but letters and digits.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A secret shorter than this is hidden where it stands alone, but not looked for in other texts: there a letter or
/// two would make every message unreadable, and the holes would tell what it is.
const SHORTEST: usize = 4;

/// So many bytes in common with a secret are no accident.
pub(crate) const RUN: usize = 8;

/// A text that never appears in `Debug` output and has no `Display`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

/// Knows the secrets of a call, and takes them out of texts.
///
/// # Guarantees
/// In any text a secret is found as it is, backwards, and as JSON, percent-encoding, base64 and hexadecimal digits write
/// it when it stands alone, in upper and lower case; in base64 also as a part of something longer. In somebody else's text, whatever part of these it has in common
/// with a secret of [`RUN`] bytes or more is taken out too. A receiver or a program that changes a secret in another way
/// can print it.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The forms of every secret in lower case, each once.
    needles: Vec<String>,
}

/// Where a text was cut off, so that it may begin or end in the middle of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It is whole.
    Nowhere,
    /// What came before it is missing.
    Before,
    /// What came after it is missing.
    After,
}

// === impl Secret ===

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to keep secret.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "<secret>" })
    }
}

// === impl Redactor ===

impl Redactor {
    /// Knows these secrets.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Redactor {
        let forms = secrets.into_iter().flat_map(forms);
        let mut needles: Vec<String> = forms.map(|form| form.to_ascii_lowercase()).collect();
        needles.sort_unstable();
        needles.dedup();
        Redactor { needles }
    }

    /// The text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        let mut hidden = vec![false; text.len()];
        self.hide_whole(&text.to_ascii_lowercase(), &mut hidden);
        masked(text, &hidden, 0..text.len())
    }

    /// What somebody else wrote, without the secrets and without parts of them.
    pub fn redact_foreign(&self, text: &str, cut: Cut) -> String {
        if self.needles.is_empty() {
            return text.to_owned();
        }
        let mut hidden = vec![false; text.len()];
        let lower = text.to_ascii_lowercase();
        self.hide_whole(&lower, &mut hidden);
        self.hide_parts(lower.as_bytes(), &mut hidden);
        // A shorter rest of a secret at the edge is not known for one.
        let rest = RUN - 1;
        let shown = match cut {
            Cut::Nowhere => 0..text.len(),
            Cut::Before => rest.min(text.len())..text.len(),
            Cut::After => 0..text.len().saturating_sub(rest),
        };
        masked(text, &hidden, shown)
    }

    fn hide_whole(&self, lower: &str, hidden: &mut [bool]) {
        for needle in &self.needles {
            for (at, found) in lower.match_indices(needle.as_str()) {
                hidden[at..at + found.len()].fill(true);
            }
        }
    }

    /// Texts are short and secrets may be long: what the text has is noted, and the secrets are gone through once.
    fn hide_parts(&self, lower: &[u8], hidden: &mut [bool]) {
        let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (at, run) in lower.windows(RUN).enumerate() {
            places.entry(run).or_default().push(at);
        }
        for run in self.needles.iter().flat_map(|needle| needle.as_bytes().windows(RUN)) {
            for at in places.remove(run).unwrap_or_default() {
                hidden[at..at + RUN].fill(true);
            }
        }
    }
}

/// The part of a text that is shown, with a mask for each stretch that is hidden.
fn masked(text: &str, hidden: &[bool], shown: Range<usize>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut behind = false;
    for (at, char) in text.char_indices() {
        let is_hidden = hidden[at..at + char.len_utf8()].contains(&true);
        if is_hidden && !behind {
            out.push_str(MASK);
        }
        behind = is_hidden;
        if !is_hidden && shown.contains(&at) {
            out.push(char);
        }
    }
    out
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.needles.len())
    }
}

/// How a secret may look in a text, but for upper and lower case. The lines of one that has several are looked for each:
/// logs break lines.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for text in std::iter::once(secret).chain(secret.lines()) {
        let text = text.trim();
        if text.len() < SHORTEST {
            continue;
        }
        forms.push(text.to_owned());
        forms.push(text.to_uppercase());
        forms.push(text.to_lowercase());
        forms.push(text.chars().rev().collect());
        let json = serde_json::Value::from(text).to_string();
        forms.push(json[1..json.len() - 1].to_owned());
        forms.push(utf8_percent_encode(text, COMPONENT).to_string());
        forms.push(utf8_percent_encode(text, NON_ALPHANUMERIC).to_string());
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            forms.push(engine.encode(text));
            forms.extend((0..3).map(|offset| inside(engine, text, offset)));
        }
        forms.push(text.bytes().map(|byte| format!("{byte:02x}")).collect());
    }
    forms
}

/// The letters of base64 that a text alone decides about where it stands in something longer, so many bytes after a multiple
/// of three. A letter holds six bits: the first and the last may have some of what stands beside it.
fn inside(engine: &GeneralPurpose, text: &str, offset: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(text.bytes()).collect();
    let encoded = engine.encode(&padded);
    let (first, last) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
    encoded[first..last].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_known_as_all_programs_write_it() {
        let redactor = Redactor::new(["good-\"tok/en.x~=="]);
        for text in [
            "good-%22tok%2Fen.x~%3D%3D",
            "good-%22tok%2fen.x~%3d%3d",
            "good%2D%22tok%2Fen%2Ex%7E%3D%3D",
            "good%2d%22tok%2fen%2ex%7e%3d%3d",
        ] {
            assert_eq!(redactor.redact(text), "[redacted]", "{text}");
        }
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form_it_is_likely_to_have() {
        let redactor = Redactor::new(["s3cr3t/+\"x", "abc"]);
        for (text, expected) in [
            ("token s3cr3t/+\"x end", "token [redacted] end"),
            (r#"{"token":"s3cr3t/+\"x"}"#, r#"{"token":"[redacted]"}"#),
            ("t=s3cr3t%2F%2B%22x&u", "t=[redacted]&u"),
            ("basic czNjcjN0LysieA==", "basic [redacted]=="),
            ("abc is too short to look for", "abc is too short to look for"),
        ] {
            assert_eq!(redactor.redact(text), expected);
        }
    }

    #[test]
    fn a_secret_is_known_in_the_base64_of_something_longer() {
        let secret = "SuperSecretValue12345";
        let redactor = Redactor::new([secret]);
        for before in ["", "u", "u:", "us:", "user:"] {
            for after in ["", "\n", "-x", " and more"] {
                let wrapped = STANDARD_NO_PAD.encode(format!("{before}{secret}{after}"));
                let told = redactor.redact(&wrapped);
                assert!(told.contains(MASK), "{told}");
                // What is left is of what stands around it, and a letter at each edge that is of both.
                let left = told.replace(MASK, "").len();
                assert!(left <= (before.len() * 8).div_ceil(6) + (after.len() * 8).div_ceil(6) + 2, "{told}");
            }
        }
    }

    #[test]
    fn of_two_secrets_one_inside_the_other_the_longer_goes() {
        let redactor = Redactor::new(["password", "password-of-the-king"]);
        assert_eq!(redactor.redact("password-of-the-king, password"), "[redacted], [redacted]");
    }

    #[test]
    fn a_secret_is_known_in_other_cases_backwards_and_in_digits() {
        let redactor = Redactor::new(["Hunter2-and-möre"]);
        for text in
            ["HUNTER2-AND-MÖRE", "hunter2-and-möre", "eröm-dna-2retnuH", "48756E746572322d616e642d6dc3b67265"]
        {
            assert_eq!(redactor.redact(text), "[redacted]", "{text}");
        }
    }

    #[test]
    fn of_somebody_elses_text_parts_of_a_secret_are_taken_out_too() {
        let redactor = Redactor::new(["ghp_0123456789abcdef"]);
        let told = "the token GHP_01234567… of 0123456 and 89abcdef is bad";
        assert_eq!(
            redactor.redact_foreign(told, Cut::Nowhere),
            "the token [redacted]… of 0123456 and [redacted] is bad"
        );
        // Our own words have names in them that a secret may begin with as well.
        assert_eq!(redactor.redact("ghp_01234567"), "ghp_01234567");
    }

    #[test]
    fn the_rest_of_a_cut_secret_is_not_shown() {
        let redactor = Redactor::new(["hunter2hunter2"]);
        let cut = "nter2 and then more text hunter2hunter2 end";
        assert_eq!(redactor.redact_foreign(cut, Cut::Before), "nd then more text [redacted] end");
        assert_eq!(redactor.redact_foreign("er2hunter2 end", Cut::Before), "[redacted] end");
        assert_eq!(redactor.redact_foreign("a text of hunter2hunt", Cut::After), "a text of [redacted]");
        assert_eq!(redactor.redact_foreign("a text of hun", Cut::After), "a text");
        assert_eq!(redactor.redact_foreign("", Cut::After), "");
        assert_eq!(Redactor::default().redact_foreign("all of it", Cut::After), "all of it");
    }

    #[test]
    fn debug_output_shows_nothing() {
        assert_eq!(format!("{:?} {:?}", Secret::new("hunter2"), Secret::default()), "<secret> \"\"");
        assert_eq!(format!("{:?}", Redactor::new(["hunter2"])), "Redactor(7 forms)");
    }
}
