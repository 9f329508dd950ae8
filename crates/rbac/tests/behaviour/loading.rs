//! Reading the ConfigMap.

use baton_rbac::{DenyScope, LineFault, LoadError, MatchMode, Origin, Policy};
use serde_json::json;

use crate::{by_csv, load, may, may_not, member, rights, user};

#[test]
fn comments_and_blank_lines_are_passed_over_and_space_around_a_line_does_not_count() {
    let csv = "\n# a comment, with \" a quote\n   \r\n  p, alice, logs, get, p/*, allow  \r\n\t# p, bob, logs, get, p/*, allow\n";
    let rights = by_csv(csv);
    may(&rights, &user("alice"), "logs get p/web");
    may_not(&rights, &user("bob"), "logs get p/web");
}

#[test]
fn quotes_hold_commas() {
    let rights = by_csv("p, role:a, logs, get, \"{p,q}/*\", allow\ng, \"cn=team, ou=b\", role:a");
    may(&rights, &member("x", &["cn=team, ou=b"]), "logs get q/web");
    may_not(&rights, &member("x", &["cn=team"]), "logs get q/web");
}

#[test]
fn space_after_a_field_is_part_of_it() {
    let rights = by_csv("p, alice , logs, get, p/*, allow");
    may_not(&rights, &user("alice"), "logs get p/web");
    may(&rights, &user("alice "), "logs get p/web");
}

#[test]
fn a_line_that_cannot_be_read_refuses_the_whole_and_names_its_line() {
    for (line, words) in [
        ("p, alice, logs, get, p/*", "5 fields instead of six"),
        ("p, alice, logs, get, p/*, allow, x", "7 fields instead of six"),
        ("g, alice", "2 fields instead of three"),
        ("g, cn=a, ou=b, role:x", "4 fields instead of three"),
        ("g, a, b, c, d, e", "6 fields instead of three"),
        ("p2, alice, logs, get, p/*, allow", "begins with p or g"),
        (", alice", "begins with p or g"),
        ("P, alice, logs, get, p/*, allow", "begins with p or g"),
        ("p, a\"b, logs, get, p/*, allow", "a quote stands inside a field"),
        ("p, \"a, logs, get, p/*, allow", "a quote is not closed"),
    ] {
        let csv = format!("p, alice, logs, get, p/*, allow\n\n{line}\n");
        let error = load(&[("policy.csv", &csv)]).expect_err(line);
        let text = error.to_string();
        assert!(text.contains("line 3 of policy.csv") && text.contains(words), "{line}: {text}");
    }
}

#[test]
fn lines_are_numbered_within_their_key() {
    let entries = [("policy.csv", "# one"), ("policy.b.csv", "\n\nx"), ("policy.a.csv", "# fine")];
    let LoadError::Line { origin, fault, .. } = load(&entries).expect_err("x is no line") else {
        panic!("another error")
    };
    assert_eq!(origin, Origin::Config { key: "policy.b.csv".into(), line: 3 });
    assert_eq!(fault, LineFault::Key("\"x\"".to_owned()));
}

#[test]
fn all_keys_of_policies_are_read_and_no_others() {
    let line = |name: &str| format!("p, {name}, logs, get, p/*, allow");
    let texts: Vec<String> = ["main", "b", "a", "other", "none"].map(line).to_vec();
    let rights = rights(&[
        ("policy.csv", &texts[0]),
        ("policy.b.csv", &texts[1]),
        ("policy.a.csv", &texts[2]),
        ("mypolicy.csv", &texts[3]),
        ("policy.txt", &texts[4]),
    ]);
    for name in ["main", "a", "b"] {
        may(&rights, &user(name), "logs get p/web");
    }
    for name in ["other", "none"] {
        may_not(&rights, &user(name), "logs get p/web");
    }
}

#[test]
fn the_order_is_the_built_in_policy_then_the_main_key_then_the_others_by_name() {
    let line = "p, alice, logs, get, p/*, allow";
    let rights = rights(&[
        ("policy.csv", "# nothing"),
        ("policy.b.csv", line),
        ("policy.a.csv", line),
        ("policy.default", "role:readonly"),
    ]);
    let decision = crate::decide(&rights, &user("alice"), "logs get p/web");
    assert_eq!(decision.line().expect("a line").origin(), &Origin::BuiltIn);
    let rights = crate::rights(&[("policy.b.csv", line), ("policy.a.csv", line)]);
    let decision = crate::decide(&rights, &user("alice"), "logs get p/web");
    let origin = decision.line().expect("a line").origin().clone();
    assert_eq!(origin, Origin::Config { key: "policy.a.csv".into(), line: 1 });
}

#[test]
fn the_mode_of_patterns_is_glob_unless_it_says_regex() {
    for (word, mode, warnings) in [
        ("", MatchMode::Glob, 0),
        ("glob", MatchMode::Glob, 0),
        ("regex", MatchMode::Regex, 0),
        ("Regex", MatchMode::Glob, 1),
    ] {
        let policy = load(&[("policy.matchMode", word)]).expect(word);
        assert_eq!((policy.match_mode(), policy.warnings().len()), (mode, warnings), "{word}");
    }
}

#[test]
fn scopes_are_a_list_of_claims() {
    let scopes = |text: &str| load(&[("scopes", text)]).map(|policy| policy.scopes().to_vec());
    assert_eq!(scopes("").expect("none"), ["groups"]);
    assert_eq!(scopes("[groups, email]").expect("a list"), ["groups", "email"]);
    assert_eq!(scopes("- cognito:groups\n").expect("a list"), ["cognito:groups"]);
    assert_eq!(scopes("[]").expect("an empty list"), Vec::<String>::new());
    for wrong in ["groups", "[1]", "{a: b}", "[", "[[a]]"] {
        let error = scopes(wrong).expect_err(wrong).to_string();
        assert!(error.starts_with("scopes: ") && error.contains("[groups, email]"), "{error}");
    }
}

#[test]
fn groups_are_the_texts_and_lists_under_the_scopes() {
    let policy = load(&[("scopes", "[groups, email]")]).expect("a policy");
    let claims = json!({"groups": ["a", 1, "b", null], "email": "x@y", "sub": "s", "roles": ["c"]});
    let groups = policy.groups(claims.as_object().expect("an object"));
    assert_eq!(groups, ["a".into(), "b".into(), "x@y".into()]);
    let odd = json!({"groups": {"a": 1}, "email": 3});
    assert!(policy.groups(odd.as_object().expect("an object")).is_empty());
}

#[test]
fn strict_deny_is_true_or_false_and_nothing_like_it() {
    let scope = |word: &str| load(&[("policy.strictDeny", word)]).map(|policy| policy.deny_scope());
    assert_eq!(scope(""), Ok(DenyScope::Subject));
    assert_eq!(scope("false"), Ok(DenyScope::Subject));
    assert_eq!(scope("true"), Ok(DenyScope::Caller));
    assert!(matches!(scope("yes"), Err(LoadError::StrictDeny { .. })));
}

#[test]
fn what_does_not_do_what_it_seems_to_is_told_of() {
    let csv = "p, a, logs, get, [, allow\np, a, logs, get, p/*, Allow\np, a, log, get, p/*, deny\ng, a, role:gone\n";
    let policy = load(&[("policy.csv", csv), ("policy.default", "role:none")]).expect("Argo CD takes it");
    let found: Vec<String> = policy.warnings().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn the_built_in_policy_stands_alone_when_there_is_no_config_map() {
    let policy = Policy::built_in();
    assert_eq!((policy.default_role(), policy.warnings().len()), (None, 0));
    assert_eq!(policy.scopes(), ["groups"]);
}

#[test]
fn policies_beyond_the_bounds_are_refused() {
    let error = |csv: String| load(&[("policy.csv", &csv)]).expect_err("too large");
    assert_eq!(error("#".repeat((2 << 20) + 1)), LoadError::Size { most: 2 << 20 });
    assert_eq!(error("g,a,b\n".repeat(20_001)), LoadError::Lines { most: 20_000 });
    let roles: String = (0..1_100).map(|at| format!("g, a, r{at}\n")).collect();
    assert!(matches!(error(roles), LoadError::Roles { .. }));
    let line = format!("p, a, logs, get, {}, allow", "x".repeat(3_000));
    assert!(matches!(error(line), LoadError::Line { fault: LineFault::FieldTooLong, .. }));
    let line = format!("p{}", ",".repeat(9_000));
    assert!(matches!(error(line), LoadError::Line { fault: LineFault::LineTooLong, .. }));
    let costly: String = (0..2_000).map(|at| format!("p, a, logs, get, \\pL{{20}}{at}, allow\n")).collect();
    let entries = [("policy.csv", costly.as_str()), ("policy.matchMode", "regex")];
    assert_eq!(load(&entries).err(), Some(LoadError::Expressions));
}
