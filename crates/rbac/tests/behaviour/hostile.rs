//! Texts that mean harm.

use baton_rbac::{
    Action, Caller, Object, Policy, Request, Resource, Rights, TokenApproval, Verb, validate_roles,
};
use proptest::prelude::*;

use crate::{by_csv, data, may_not, member, project, user};

/// Pieces that policies are made of, and some that they should not be.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "p",
            "g",
            ",",
            ", ",
            "\"",
            "\"\"",
            "\n",
            "\r\n",
            "#",
            "\0",
            "*",
            "**",
            "[",
            "]",
            "{",
            "}",
            "\\",
            "(",
            "a{999}",
            "role:admin",
            "alice",
            "applications",
            "get",
            "*/*",
            "allow",
            "deny",
            "\u{feff}",
            "\u{202e}",
            "ü",
            "🎉",
            "[!a-z]",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_text_panics_or_makes_an_administrator(csv in text(), mode in prop::bool::ANY, object in text(), name in text()) {
        let mode = if mode { "regex" } else { "glob" };
        let entries = data(&[("policy.csv", &csv), ("policy.matchMode", mode), ("policy.default", &name)]);
        let rights = match Policy::load(&entries) {
            Ok(policy) => Rights::new(policy),
            Err(error) => { prop_assert!(error.to_string().len() < 2_000); Rights::new(Policy::built_in()) }
        };
        let caller = Caller::session(name.as_str(), [object.as_str()]);
        if let Ok(object) = Object::new(object.as_str()) {
            for resource in Resource::ALL {
                let request = Request::new(resource, Verb::Get, object.clone());
                let _ = rights.decide(&caller, &request).to_string();
            }
        }
    }

    #[test]
    fn no_role_of_a_project_panics(policy in text(), group in text(), role in text(), name in text()) {
        let given = project(&name, &[(&role, &[&policy], &[&group])]);
        let _ = validate_roles(&given);
        let mut rights = by_csv("");
        let _ = rights.set_project(&given, TokenApproval::Allowed);
        for caller in [member("x", &[&group]), Caller::project_token(&name, &role)] {
            let object = Object::new(format!("{name}/x")).expect("short");
            let _ = rights.decide(&caller, &Request::new(Resource::Applications, Verb::Get, object)).to_string();
        }
    }

    #[test]
    fn whatever_is_found_to_be_sound_can_be_read(group in prop_oneof![text(), "[ab, \"]{1,8}"], name in text()) {
        let given = project(&name, &[("r", &[], &[&group])]);
        let is_sound = validate_roles(&given).is_empty();
        let loaded = by_csv("").set_project(&given, TokenApproval::Refused);
        prop_assert!(loaded.is_ok() || !is_sound, "{group:?}: {loaded:?}");
    }

    #[test]
    fn no_word_panics(resource in text(), action in text(), object in text()) {
        let _ = Request::parse(&resource, &action, &object, "argocd").map(|request| request.project().map(str::to_owned));
        if let Ok(parsed) = Action::parse(&action) {
            prop_assert_eq!(parsed.as_str(), action);
        }
    }
}

#[test]
fn a_thousand_circles_of_roles_end() {
    let mut csv = String::new();
    for at in 0..900 {
        csv.push_str(&format!("g, r{at}, r{}\ng, r{at}, r{}\n", (at + 1) % 900, (at * 7) % 900));
    }
    csv.push_str("p, r899, logs, get, *, allow");
    let rights = by_csv(&csv);
    may_not(&rights, &user("x"), "logs get p/web");
    let _ = crate::decide(&rights, &user("r0"), "logs get p/web");
}

#[test]
fn the_costliest_pattern_on_the_longest_object_is_answered() {
    for (mode, pattern) in
        [("glob", "{a*,b*}".repeat(250)), ("regex", "(a*)*b".repeat(300)), ("glob", "a*".repeat(1_000))]
    {
        let csv = format!("p, x, logs, get, \"p/{pattern}\", allow");
        let rights = crate::rights(&[("policy.csv", &csv), ("policy.matchMode", mode)]);
        let object = format!("logs get p/{}c", "a".repeat(4_000));
        let _ = crate::decide(&rights, &user("x"), &object);
    }
}

#[test]
fn invisible_characters_make_another_name() {
    let rights = by_csv("g, alice\u{200b}, role:admin\ng, bob\0, role:admin");
    may_not(&rights, &user("alice"), "applications get p/web");
    may_not(&rights, &user("bob"), "applications get p/web");
}
