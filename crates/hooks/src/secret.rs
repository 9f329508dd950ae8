//! Texts that must not be seen, and taking them out of texts that are.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands where a secret was.
const MASK: &str = "[redacted]";

/// What programs encode of a part of a URL; some encode all but letters and digits.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A secret shorter than this is hidden where it stands alone, but not looked for in other texts: there a letter or
/// two would make every message unreadable, and the holes would tell what it is.
const SHORTEST: usize = 4;

/// A text that never appears in `Debug` output and has no `Display`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

/// Knows the secrets of a call, and takes them out of texts.
///
/// # Guarantees
/// A secret is found as it is, and as JSON, percent-encoding and base64 write it when it stands alone; a receiver
/// or a program that changes it in another way can print it.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The forms of every secret, longest first, so that one that contains another is taken out whole.
    needles: Vec<String>,
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
        let mut needles: Vec<String> = secrets.into_iter().flat_map(forms).collect();
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Redactor { needles }
    }

    /// The text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        self.redact_from(text, 0)
    }

    /// The end of a text whose beginning was cut off and may be the rest of a secret. So much of it is left out
    /// as the longest secret takes.
    pub fn redact_cut(&self, text: &str) -> String {
        self.redact_from(text, self.longest())
    }

    /// Length of the longest form of a secret, in bytes.
    pub fn longest(&self) -> usize {
        self.needles.first().map_or(0, String::len)
    }

    fn redact_from(&self, text: &str, from: usize) -> String {
        let mut out = String::with_capacity(text.len().saturating_sub(from));
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if let Some(needle) = self.needles.iter().find(|needle| rest.starts_with(needle.as_str())) {
                if at + needle.len() > from {
                    out.push_str(MASK);
                }
                at += needle.len();
                continue;
            }
            let Some(char) = rest.chars().next() else { break };
            if at >= from {
                out.push(char);
            }
            at += char.len_utf8();
        }
        out
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.needles.len())
    }
}

/// How a secret may look in a text. The lines of one that has several are looked for each: logs break lines.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for text in std::iter::once(secret).chain(secret.lines()) {
        let text = text.trim();
        if text.len() < SHORTEST {
            continue;
        }
        forms.push(text.to_owned());
        let json = serde_json::Value::from(text).to_string();
        forms.push(json[1..json.len() - 1].to_owned());
        for set in [COMPONENT, NON_ALPHANUMERIC] {
            let encoded = utf8_percent_encode(text, set).to_string();
            forms.push(lower_hex(&encoded));
            forms.push(encoded);
        }
        forms.push(STANDARD_NO_PAD.encode(text));
        forms.push(URL_SAFE_NO_PAD.encode(text));
    }
    forms
}

/// Percent-encoding with its digits in lower case.
fn lower_hex(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        text.push('%');
        text.push_str(&digits.to_ascii_lowercase());
        text.push_str(rest);
    }
    text
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
    fn of_two_secrets_one_inside_the_other_the_longer_goes() {
        let redactor = Redactor::new(["password", "password-of-the-king"]);
        assert_eq!(redactor.redact("password-of-the-king, password"), "[redacted], [redacted]");
    }

    #[test]
    fn the_rest_of_a_cut_secret_is_not_shown() {
        let redactor = Redactor::new(["hunter2hunter2"]);
        assert_eq!(redactor.longest(), 19);
        let cut = "nter2 and then more text hunter2hunter2 end";
        assert_eq!(redactor.redact_cut(cut), " text [redacted] end");
        assert_eq!(redactor.redact_cut("a text of hunter2hunter2 end"), "[redacted] end");
    }

    #[test]
    fn debug_output_shows_nothing() {
        assert_eq!(format!("{:?} {:?}", Secret::new("hunter2"), Secret::default()), "<secret> \"\"");
        assert_eq!(format!("{:?}", Redactor::new(["hunter2"])), "Redactor(2 forms)");
    }
}
