//! Answers look as Argo CD's own server's look: the same fields of the same types, status, type and framing.
//!
//! `argo-cd.json` has what a real one answered (3.6.0) to the same calls, names and types only; `differences.json` what differs and
//! why. What differs otherwise, and a difference that is none any more, fails. To record another version, run this test with
//! `BATON_SHAPES_OF` set to the JSON of its place: `{"url", "password", "cluster", "repository"}`, the last a git repository that
//! both may read under that path.

mod course;
mod player;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::place::Place;
use player::{Player, Recording, Target};

/// Why some answers differ, and how: a line of ours begins with a plus, one of Argo CD's with a minus. A `*` stands for anything.
#[derive(Debug, Deserialize)]
struct Difference {
    why: String,
    /// Which calls.
    calls: BTreeSet<String>,
    lines: BTreeSet<String>,
    /// Whether it depends on how far controllers have come when the call is made, here or where the recording was made.
    #[serde(default)]
    sometimes: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_looks_as_argo_cds() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/people/shapes");
    if let Ok(other) = std::env::var("BATON_SHAPES_OF") {
        let text = serde_json::to_string_pretty(&recorded(target(&other)).await).expect("JSON");
        std::fs::write(here.join("argo-cd.json"), text + "\n").expect("a file");
        return;
    }
    let place = Place::start().await;
    let ours = recorded(Target {
        url: format!("http://{}", place.address),
        password: place.password(),
        cluster: "dev".to_owned(),
        repository: place.repository().into(),
    })
    .await;
    let theirs: Recording = read(&here.join("argo-cd.json"));
    let differences: Vec<Difference> = read(&here.join("differences.json"));
    let faults = compared(&ours, &theirs, &differences);
    assert!(faults.is_empty(), "{} differences without a reason:\n{}", faults.len(), faults.join("\n"));
}

async fn recorded(target: Target) -> Recording {
    let mut player = Player::new(target);
    course::play(&mut player).await;
    let recording = player.recording();
    for call in course::TIER_A {
        let of = |name: &String| {
            name.strip_prefix(call).is_some_and(|rest| call.ends_with('/') || !rest.starts_with('/'))
        };
        assert!(recording.keys().any(of), "{call} is not asked");
    }
    recording
}

fn target(text: &str) -> Target {
    let place: Value = serde_json::from_str(text).expect("JSON");
    let text = |name: &str| place[name].as_str().unwrap_or_else(|| panic!("{name} is missing")).to_owned();
    Target {
        url: text("url"),
        password: text("password"),
        cluster: text("cluster"),
        repository: text("repository").into(),
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What differs without a reason, and reasons for what does not differ.
fn compared(ours: &Recording, theirs: &Recording, differences: &[Difference]) -> Vec<String> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for call in ours.keys().chain(theirs.keys()) {
        let none = BTreeSet::new();
        let [ours, theirs] = [ours, theirs].map(|all| all.get(call).unwrap_or(&none));
        let more = ours.difference(theirs).map(|line| format!("+{line}"));
        let less = theirs.difference(ours).map(|line| format!("-{line}"));
        found.insert(call, more.chain(less).collect());
    }
    let mut faults = Vec::new();
    for difference in differences {
        assert!(!difference.why.is_empty(), "a difference has a reason");
        for call in &difference.calls {
            for line in &difference.lines {
                let mut met = difference.sometimes;
                for (_, lines) in found.iter_mut().filter(|(name, _)| fits(call, name)) {
                    let before = lines.len();
                    lines.retain(|one| !fits(line, one));
                    met |= lines.len() != before;
                }
                if !met {
                    faults.push(format!("{call}: no longer differs: {line}"));
                }
            }
        }
    }
    let left = found.iter().flat_map(|(call, lines)| lines.iter().map(move |line| format!("{call}: {line}")));
    faults.extend(left);
    faults
}

/// Whether a text is what a pattern with stars means.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().any(|at| fits(rest, &text[at..]))
}

#[test]
fn what_differs_without_a_reason_and_a_reason_without_a_difference_are_told() {
    let recording = |lines: &[&str]| -> Recording {
        [("GET /a".to_owned(), lines.iter().map(|line| (*line).to_owned()).collect())].into()
    };
    let (ours, theirs) = (recording(&[".a string", ".b number"]), recording(&[".a string", ".c time"]));
    let difference = |calls: &str, lines: &[&str]| Difference {
        why: "because".to_owned(),
        calls: [calls.to_owned()].into(),
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        sometimes: false,
    };
    assert_eq!(compared(&ours, &theirs, &[]), ["GET /a: +.b number", "GET /a: -.c time"]);
    let both = ["+.b number", "-.c time"];
    assert!(compared(&ours, &theirs, &[difference("*", &both)]).is_empty());
    assert!(compared(&ours, &theirs, &[difference("GET /a", &both)]).is_empty());
    assert_eq!(
        compared(&ours, &ours, &[difference("GET /a", &both[..1])]),
        ["GET /a: no longer differs: +.b number"]
    );
    assert_eq!(compared(&ours, &ours, &[difference("*", &both[..1])]), ["*: no longer differs: +.b number"]);
    let elsewhere = compared(&ours, &theirs, &[difference("GET /b", &both[..1])]);
    assert_eq!(elsewhere.len(), 3, "{elsewhere:?}");
    assert!(compared(&ours, &theirs, &[difference("GET *", &["+.*r", "-.c*"])]).is_empty());
    let sometimes = Difference { sometimes: true, ..difference("*", &["+.none"]) };
    assert_eq!(compared(&ours, &ours, &[sometimes]), [""; 0]);
}
