//! Forms of revisions that Application controllers report in their own way: whatever changes while an operation is under
//! way, the order is kept and the run ends.

use baton_rollout::pin::SourceKey;

use crate::stage::{FLEET, Mood, REPOSITORY, Stage, plain};

/// How a revision is asked for, and what it is three times.
struct Form {
    name: &'static str,
    key: SourceKey,
    releases: [&'static str; 3],
    /// What is reported for it.
    alias: Option<fn(&str) -> String>,
}

fn key(target: &str, chart: &str) -> SourceKey {
    SourceKey { repo: REPOSITORY.into(), target: target.into(), chart: chart.into(), tag_prefix: "".into() }
}

fn forms() -> [Form; 3] {
    [
        Form {
            name: "Helm range",
            key: key("1.x", "shop"),
            releases: ["1.0.0", "1.9.3", "1.10.0"],
            alias: None,
        },
        Form {
            name: "annotated tag, reported by its own object",
            key: key("release", ""),
            releases: ["one", "two", "three"],
            alias: Some(|commit| format!("tag of {commit}")),
        },
        Form {
            name: "short SHA, reported as it is asked for",
            key: key("0123456", ""),
            releases: ["01234560", "01234561", "01234562"],
            alias: Some(|commit| commit[..3].to_owned()),
        },
    ]
}

/// What changes, and the doing of it.
type Change = (&'static str, fn(&mut Stage, &Form));

/// Specification, options, project and destination are one to the machine: parts of a specification.
const CHANGES: [Change; 2] = [
    ("another revision", |stage, form| stage.release(form.releases[2])),
    ("another specification", |stage, _| stage.change_template()),
];

#[test]
fn a_revision_in_any_form_keeps_the_order_whatever_changes_in_an_operation() {
    for form in forms() {
        for (what, change) in CHANGES {
            for name in ["a", "b"] {
                let mut stage = Stage::new(plain(), &FLEET);
                stage.wanted.members.values_mut().for_each(|member| member.sources = vec![form.key.clone()]);
                (stage.alias, stage.branch) = (form.alias, Ok(form.releases[0].to_owned()));
                stage.until("the first run to end", Stage::is_over);
                stage.mood(name, Mood::NeverEnds);
                stage.release(form.releases[1]);
                stage.pass(30);
                change(&mut stage, &form);
                stage.pass(30);
                stage.mend();
                stage.until(&format!("{}, {what}", form.name), Stage::is_over);
                assert_eq!(stage.machine.head().run.seq, 3, "{}, {what}", form.name);
                assert_eq!(stage.disorder, Vec::<String>::new(), "{}, {what}", form.name);
            }
            println!("{}, {what}: no violation", form.name);
        }
    }
}
