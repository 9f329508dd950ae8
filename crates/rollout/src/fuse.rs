//! The fuse against mass deletion: a generator that suddenly gives much less must not take a fleet with it.
//!
//! It is about Applications that generators drop, never about the deletion of a set, which somebody asked for. While it
//! holds, nothing of the set is deleted. A person approves one doomed set; the approval is used once.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use baton_api::application_set::ApplicationSetSpec;
use serde_json::Value;

use crate::pin::Fingerprint;

/// No fewer Applications are a mass.
pub const AT_LEAST: usize = 5;
/// How many Applications a message names.
const NAMED: usize = 50;
/// Tells an approval that was accepted.
const BEGUN: &str = "begun-";
/// What stands before the fingerprint in a message.
const APPROVE: &str = "baton.dev/deletion-approved=";

/// When the fuse holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fuse {
    /// Never.
    Off,
    /// When more than so many of a hundred Applications would go.
    Share(u32),
}

/// A fuse that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a percentage such as 50% nor off")]
pub struct Unreadable(pub String);

/// What was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Exactly these go: the fingerprint of the doomed, by a person.
    Doomed(Fingerprint),
    /// The deletion was begun: it goes on while the same are kept. Written by the controller in place of the
    /// approval, because the doomed become fewer with every one that goes.
    Begun(Fingerprint),
}

/// What the fuse says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// So few go that nobody needs to be asked.
    Free,
    /// A person approved exactly this; the acceptance is to be noted before the first deletion.
    Accepted,
    /// It was accepted before.
    Begun,
    /// Nothing is deleted.
    Holds,
}

/// Whether so many of `total` may go.
pub fn judge(fuse: Fuse, total: usize, doomed: usize) -> bool {
    match fuse {
        Fuse::Off => true,
        Fuse::Share(share) => doomed < AT_LEAST || doomed * 100 <= share as usize * total,
    }
}

/// Whether these may go, with what was approved. `kept` are the Applications that generators still give.
pub fn verdict<'a>(
    fuse: Fuse,
    total: usize,
    doomed: &[(Arc<str>, Arc<str>)],
    kept: impl IntoIterator<Item = &'a str>,
    approval: Option<Approval>,
) -> Verdict {
    if judge(fuse, total, doomed.len()) {
        return Verdict::Free;
    }
    match approval {
        Some(Approval::Doomed(print)) if print == fingerprint(doomed) => Verdict::Accepted,
        Some(Approval::Begun(print)) if print == kept_fingerprint(kept) => Verdict::Begun,
        _ => Verdict::Holds,
    }
}

/// Of the Applications that would go: their names and UIDs, in the order of names.
pub fn fingerprint(doomed: &[(Arc<str>, Arc<str>)]) -> Fingerprint {
    Fingerprint::of(doomed.iter().flat_map(|(name, uid)| [name.as_bytes(), uid.as_bytes()]))
}

/// Of the Applications that stay, in any order.
pub fn kept_fingerprint<'a>(kept: impl IntoIterator<Item = &'a str>) -> Fingerprint {
    let mut names: Vec<&str> = kept.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    Fingerprint::of(names)
}

/// What a person is told while the fuse holds: how many go and which, and how to approve it.
pub fn message(set: &str, total: usize, doomed: &[(Arc<str>, Arc<str>)]) -> String {
    let names: Vec<&str> = doomed.iter().take(NAMED).map(|(name, _)| &**name).collect();
    let more = match doomed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "generators no longer give {} of {total} Applications, none of which is deleted without approval: {}{more}; approve \
         with `baton appset approve-deletion {set}` or the annotation {APPROVE}{}",
        doomed.len(),
        names.join(", "),
        fingerprint(doomed)
    )
}

/// The fingerprint to approve, out of a [`message`].
pub fn asked_for(message: &str) -> Option<Fingerprint> {
    let (_, rest) = message.rsplit_once(APPROVE)?;
    rest.parse().ok()
}

/// Whether a set's generators only follow pull requests or repositories, which come and go by many.
pub fn follows_hosts_only(spec: &ApplicationSetSpec) -> bool {
    let generators = serde_json::to_value(&spec.generators).unwrap_or_default();
    let all = generators.as_array().map(Vec::as_slice).unwrap_or_default();
    !all.is_empty() && all.iter().all(is_of_host)
}

fn is_of_host(generator: &Value) -> bool {
    let Some(fields) = generator.as_object() else { return false };
    let mut kinds = fields.iter().filter(|(key, value)| *key != "selector" && !value.is_null()).peekable();
    let known = |(key, value): (&String, &Value)| match key.as_str() {
        "pullRequest" | "scmProvider" => true,
        "matrix" | "merge" => {
            let inner = value["generators"].as_array().map(Vec::as_slice).unwrap_or_default();
            !inner.is_empty() && inner.iter().all(is_of_host)
        }
        _ => false,
    };
    kinds.peek().is_some() && kinds.all(known)
}

// === impl Fuse ===

impl FromStr for Fuse {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Fuse, Unreadable> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("off") {
            return Ok(Fuse::Off);
        }
        let digits = text.strip_suffix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let share = digits.and_then(|digits| digits.parse::<u32>().ok()).filter(|share| *share <= 100);
        share.map(Fuse::Share).ok_or_else(|| Unreadable(text.to_owned()))
    }
}

impl fmt::Display for Fuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fuse::Off => f.write_str("off"),
            Fuse::Share(share) => write!(f, "{share}%"),
        }
    }
}

// === impl Approval ===

impl FromStr for Approval {
    type Err = ();

    fn from_str(text: &str) -> Result<Approval, ()> {
        match text.trim().strip_prefix(BEGUN) {
            Some(print) => print.parse().map(Approval::Begun),
            None => text.trim().parse().map(Approval::Doomed),
        }
    }
}

impl fmt::Display for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approval::Doomed(print) => write!(f, "{print}"),
            Approval::Begun(print) => write!(f, "{BEGUN}{print}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn doomed(count: usize) -> Vec<(Arc<str>, Arc<str>)> {
        (0..count).map(|n| (format!("app-{n:03}").into(), format!("uid-{n}").into())).collect()
    }

    #[test]
    fn more_than_the_share_and_at_least_five_are_a_mass() {
        for (fuse, total, going, free) in [
            (Fuse::Share(50), 10, 5, true),
            (Fuse::Share(50), 10, 6, false),
            (Fuse::Share(50), 9, 5, false),
            (Fuse::Share(50), 4, 4, true),
            (Fuse::Share(50), 6, 6, false),
            (Fuse::Share(0), 100, 5, false),
            (Fuse::Share(0), 100, 4, true),
            (Fuse::Share(100), 10, 10, true),
            (Fuse::Off, 10, 10, true),
        ] {
            assert_eq!(judge(fuse, total, going), free, "{fuse}: {going} of {total}");
        }
    }

    #[test]
    fn an_approval_is_for_these_and_no_others() {
        let (six, seven) = (doomed(6), doomed(7));
        let approval = Some(Approval::Doomed(fingerprint(&six)));
        let judge = |doomed: &[(Arc<str>, Arc<str>)], kept: &[&str], approval| {
            verdict(Fuse::Share(50), 10, doomed, kept.iter().copied(), approval)
        };
        assert_eq!(judge(&six, &["kept"], None), Verdict::Holds);
        assert_eq!(judge(&six, &["kept"], approval), Verdict::Accepted);
        assert_eq!(judge(&seven, &["kept"], approval), Verdict::Holds);
        let mut anew = six.clone();
        anew[0].1 = "another".into();
        assert_eq!(judge(&anew, &["kept"], approval), Verdict::Holds, "one made anew is another");
        let begun = Some(Approval::Begun(kept_fingerprint(["a", "b"])));
        assert_eq!(judge(&doomed(5), &[], None), Verdict::Free, "five of ten are no mass");
        assert_eq!(judge(&six, &["b", "a"], begun), Verdict::Begun);
        assert_eq!(judge(&six, &["a"], begun), Verdict::Holds);
    }

    #[test]
    fn the_message_says_what_to_approve() {
        for count in [6, 200] {
            let doomed = doomed(count);
            let text = message("web", 300, &doomed);
            assert_eq!(asked_for(&text), Some(fingerprint(&doomed)));
            assert!(text.contains("app-000, app-001") && text.len() < 2000, "{text}");
            assert_eq!(text.contains("and 150 more"), count == 200);
        }
        assert_eq!(asked_for("nothing of the kind"), None);
    }

    #[test]
    fn shares_and_approvals_are_read_as_they_are_written() {
        for text in ["off", "50%", "0%", "100%"] {
            assert_eq!(text.parse::<Fuse>().map(|fuse| fuse.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "50", "101%", "-1%", "+5%", "%", "half"] {
            assert!(text.parse::<Fuse>().is_err(), "{text}");
        }
        let print = Fingerprint::of(["x"]);
        for approval in [Approval::Doomed(print), Approval::Begun(print)] {
            assert_eq!(approval.to_string().parse(), Ok(approval));
        }
        assert!("yes".parse::<Approval>().is_err());
    }

    #[test]
    fn sets_of_pull_requests_and_repositories_come_and_go() {
        let spec = |generators: Value| -> ApplicationSetSpec {
            serde_json::from_value(json!({"generators": generators, "template": {}})).expect("a spec")
        };
        let pull = json!({"pullRequest": {"github": {"owner": "o", "repo": "r"}}});
        let scm = json!({"scmProvider": {"github": {"organization": "o"}}});
        let list = json!({"list": {"elements": []}});
        for (generators, expected) in [
            (json!([pull]), true),
            (json!([pull, scm]), true),
            (json!([pull, list]), false),
            (json!([{"matrix": {"generators": [pull, scm]}}]), true),
            (json!([{"matrix": {"generators": [pull, list]}}]), false),
            (json!([list]), false),
            (json!([]), false),
        ] {
            assert_eq!(follows_hosts_only(&spec(generators.clone())), expected, "{generators}");
        }
    }
}
