//! What people ask of a rollout, by annotations on its set, and the words among them that say nothing.
//!
//! A word that cannot be read is never passed over in silence, and is taken for the safer of what it may mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::names::baton as names;

use crate::fuse::{Approval, Fuse};
use crate::machine::Control;
use crate::pin::Fingerprint;
use crate::steps::clipped;

/// Names that Baton gives a meaning to, on whichever object.
const KNOWN: [&str; 15] = [
    names::PIN,
    names::ROLLOUT,
    names::HEAL,
    names::DELETION_FUSE,
    names::DELETION_APPROVED,
    names::PAUSED,
    names::ABORT,
    names::RETRY,
    names::ADVANCE,
    names::ROLLBACK,
    names::ROLLBACK_ALL,
    names::SKIP,
    names::SUPERSEDE,
    names::APPROVAL,
    names::OPERATION,
];
/// Most words that are told of one set.
const TOLD: usize = 10;

/// An annotation that says nothing, or not what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misunderstood {
    /// Its name.
    pub annotation: String,
    /// What is wrong with it.
    pub why: String,
}

type Annotations = BTreeMap<String, String>;

/// What people ask for.
pub fn read(annotations: Option<&Annotations>) -> Control {
    let request = |name: &str| word(annotations, name).map(Arc::from);
    Control {
        paused: is_paused(annotations),
        abort: request(names::ABORT),
        retry: request(names::RETRY),
        skip: word(annotations, names::SKIP).map(skipped).unwrap_or_default(),
        finish: word(annotations, names::SUPERSEDE).is_some_and(|word| word.eq_ignore_ascii_case("Finish")),
    }
}

/// Whether the rollout is held. Whoever writes anything but `false` wants it to be.
pub fn is_paused(annotations: Option<&Annotations>) -> bool {
    word(annotations, names::PAUSED).is_some_and(|word| word != "false")
}

/// The annotations that cannot be understood. Whether those name Applications that the set has is only asked where
/// `has` tells.
pub fn misunderstood(
    annotations: Option<&Annotations>,
    has: Option<&dyn Fn(&str) -> bool>,
) -> Vec<Misunderstood> {
    let mut found = Vec::new();
    for (name, text) in annotations.into_iter().flatten().filter(|(name, _)| name.starts_with(names::PREFIX))
    {
        let text = text.trim();
        let why = match name.as_str() {
            _ if text.is_empty() => None,
            names::PAUSED => (!matches!(text, "true" | "false"))
                .then(|| format!("{:?} is not understood and counts as \"true\"", clipped(text))),
            names::SUPERSEDE => {
                let known = ["Finish", "Restart"].iter().any(|word| word.eq_ignore_ascii_case(text));
                (!known).then(|| {
                    format!(
                        "{:?} is not understood and has no effect: write Finish or Restart",
                        clipped(text)
                    )
                })
            }
            names::SKIP => unreadable_skip(text),
            names::RETRY => unknown_retry(text, has),
            names::DELETION_APPROVED => text.parse::<Approval>().is_err().then(|| {
                format!(
                    "{:?} is not understood and approves nothing: `baton appset approve-deletion` writes it",
                    clipped(text)
                )
            }),
            names::DELETION_FUSE => text.parse::<Fuse>().err().map(|error| clipped_line(&error.to_string())),
            name if KNOWN.contains(&name) => None,
            _ => Some("no annotation of this name is known: it has no effect".to_owned()),
        };
        found.extend(why.map(|why| Misunderstood { annotation: clipped(name).to_owned(), why }));
    }
    found.truncate(TOLD);
    found
}

fn unreadable_skip(text: &str) -> Option<String> {
    let entry = text.split(',').map(str::trim).find(|entry| skip(entry).is_none())?;
    let why = "is not understood and skips nothing: `baton appset skip` writes <Application>=<pin>";
    Some(format!("{:?} {why}", clipped(entry)))
}

fn unknown_retry(text: &str, has: Option<&dyn Fn(&str) -> bool>) -> Option<String> {
    let (_, named) = text.split_once('/')?;
    let lacks = |name: &&str| name.is_empty() || has.is_some_and(|has| !has(name));
    let name = named.split(',').map(str::trim).find(lacks)?;
    Some(match name {
        "" => "names no Application after the slash".to_owned(),
        name => format!("the set has no Application {:?} to try again", clipped(name)),
    })
}

fn skipped(text: &str) -> BTreeMap<Arc<str>, Fingerprint> {
    text.split(',').filter_map(|entry| skip(entry.trim())).collect()
}

fn skip(entry: &str) -> Option<(Arc<str>, Fingerprint)> {
    let (name, pin) = entry.split_once('=')?;
    let name = Some(name.trim()).filter(|name| !name.is_empty())?;
    Some((name.into(), pin.trim().parse().ok()?))
}

fn word<'a>(annotations: Option<&'a Annotations>, name: &str) -> Option<&'a str> {
    annotations?.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// One line that may hold what a user wrote.
fn clipped_line(text: &str) -> String {
    text[..text.floor_char_boundary(200)].to_owned()
}

// === impl Misunderstood ===

impl std::fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.annotation, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(all: &[(&str, &str)]) -> Annotations {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn annotations_say_what_people_ask_for() {
        let set = annotations(&[
            (names::PAUSED, "true"),
            (names::ABORT, "a1"),
            (names::RETRY, " r1/web,db "),
            (names::SUPERSEDE, "finish"),
            (names::SKIP, "web=0123456789abcdef, db=nonsense,broken"),
        ]);
        let control = read(Some(&set));
        assert!(control.paused && control.finish);
        assert_eq!((control.abort.as_deref(), control.retry.as_deref()), (Some("a1"), Some("r1/web,db")));
        let expected = BTreeMap::from([("web".into(), "0123456789abcdef".parse().expect("a pin"))]);
        assert_eq!(control.skip, expected);
        assert_eq!(read(None), Control::default());
    }

    #[test]
    fn whatever_may_mean_a_pause_is_one() {
        for (text, paused) in [
            ("true", true),
            ("yes", true),
            ("TRUE", true),
            ("1", true),
            ("no", true),
            ("false", false),
            (" ", false),
        ] {
            assert_eq!(read(Some(&annotations(&[(names::PAUSED, text)]))).paused, paused, "{text:?}");
        }
    }

    #[test]
    fn no_word_is_passed_over_in_silence() {
        let has = |name: &str| name == "web";
        for (name, text, expected) in [
            (names::PAUSED, "true", None),
            (names::PAUSED, "false", None),
            (names::PAUSED, "yes", Some("\"yes\" is not understood and counts as \"true\"")),
            (names::PAUSED, "TRUE", Some("\"TRUE\" is not understood")),
            (names::SUPERSEDE, "restart", None),
            (names::SUPERSEDE, "maybe", Some("\"maybe\" is not understood and has no effect")),
            (names::SKIP, "web=0123456789abcdef", None),
            (names::SKIP, "web=0123456789abcdef,db", Some("\"db\" is not understood and skips nothing")),
            (names::SKIP, "%%%", Some("\"%%%\" is not understood")),
            (names::RETRY, "x", None),
            (names::RETRY, "x/web", None),
            (names::RETRY, "x/nope", Some("the set has no Application \"nope\"")),
            (names::RETRY, "x/", Some("names no Application")),
            (names::DELETION_APPROVED, "0123456789abcdef", None),
            (names::DELETION_APPROVED, "garbage", Some("\"garbage\" is not understood and approves nothing")),
            (names::DELETION_FUSE, "50%", None),
            (names::DELETION_FUSE, "nonsense", Some("nonsense")),
            (names::ABORT, "whatever", None),
            ("baton.dev/pausd", "true", Some("no annotation of this name is known")),
            ("example.com/paused", "yes", None),
        ] {
            let set = annotations(&[(name, text)]);
            let found = misunderstood(Some(&set), Some(&has));
            match expected {
                None => assert_eq!(found, [], "{name}={text}"),
                Some(part) => {
                    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
                    assert!(lines.len() == 1 && lines[0].contains(part), "{name}={text}: {lines:?}");
                    assert!(lines[0].starts_with(name) && !lines[0].contains('\n'));
                }
            }
        }
        assert_eq!(misunderstood(Some(&annotations(&[(names::RETRY, "x/nope")])), None), []);
        let long = annotations(&[(names::PAUSED, &"ö".repeat(10_000))]);
        assert!(misunderstood(Some(&long), None)[0].why.len() < 400);
    }
}
