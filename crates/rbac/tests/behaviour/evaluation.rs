//! The order of subjects, roles, denies and the default role.

use baton_rbac::{Because, Caller, Resource, Verb, Whose};

use crate::{by_csv, decide, may, may_not, member, request, rights, user};

#[test]
fn nothing_is_allowed_that_no_line_allows() {
    let rights = by_csv("");
    for resource in Resource::ALL {
        for verb in Verb::ALL {
            for caller in [user("alice"), user(""), Caller::anonymous(), Caller::api_key("bot")] {
                may_not(&rights, &caller, &format!("{resource} {} p/x", verb.word()));
            }
        }
    }
}

#[test]
fn the_built_in_roles_read_everything_and_change_everything_but_extensions() {
    let rights = by_csv("g, reader, role:readonly");
    let read = [
        ("applications", "p/x"),
        ("applicationsets", "p/x"),
        ("certificates", "c"),
        ("clusters", "https://x"),
        ("repositories", "https://x"),
        ("write-repositories", "https://x"),
        ("projects", "p"),
        ("accounts", "a"),
        ("gpgkeys", "k"),
        ("logs", "p/x"),
    ];
    for (resource, object) in read {
        for caller in ["reader", "admin"] {
            may(&rights, &user(caller), &format!("{resource} get {object}"));
        }
    }
    for text in [
        "applications create p/x",
        "applications update p/x",
        "applications delete p/x",
        "applications sync p/x",
        "applications rollback p/x",
        "applications override p/x",
        "applications action/apps/Deployment/restart p/x",
        "applications update/apps/Deployment/ns/web p/x",
        "applications delete//Pod/ns/x p/ns/x",
        "applicationsets create p/x",
        "applicationsets update p/x",
        "applicationsets delete p/x",
        "applicationsets action/argoproj.io/ApplicationSet/pause p/x",
        "certificates create c",
        "certificates delete c",
        "clusters create https://x",
        "clusters update p/https://x",
        "clusters delete https://x",
        "projects create p",
        "projects update p",
        "projects delete p",
        "repositories create https://x",
        "write-repositories delete https://x",
        "accounts update a",
        "gpgkeys create k",
        "gpgkeys delete k",
        "exec create p/x",
    ] {
        may(&rights, &user("admin"), text);
        may_not(&rights, &user("reader"), text);
    }
    for caller in ["reader", "admin"] {
        may_not(&rights, &user(caller), "extensions invoke x");
    }
}

#[test]
fn roles_lead_to_roles_and_circles_do_not_matter() {
    let rights = by_csv(
        "g, alice, role:a\ng, role:a, role:b\ng, role:b, role:c\ng, role:c, role:a\np, role:c, logs, get, p/*, allow",
    );
    may(&rights, &user("alice"), "logs get p/web");
    may_not(&rights, &user("bob"), "logs get p/web");
}

#[test]
fn a_role_ten_links_away_counts_and_one_further_does_not() {
    for (links, allowed) in [(10, true), (11, false)] {
        let chain: String = (0..links).map(|at| format!("g, n{at}, n{}\n", at + 1)).collect();
        let rights = by_csv(&format!("{chain}p, n{links}, logs, get, p/*, allow"));
        assert_eq!(decide(&rights, &user("n0"), "logs get p/x").allowed, allowed, "{links} links");
    }
}

#[test]
fn subjects_are_no_patterns() {
    let rights = by_csv("p, *, logs, get, *, allow\np, al*, logs, get, *, allow\ng, *, role:admin");
    may_not(&rights, &user("alice"), "logs get p/web");
    may(&rights, &user("al*"), "logs get p/web");
}

#[test]
fn one_deny_outweighs_any_allow_of_the_same_subject_wherever_it_stands() {
    let allow = "p, role:a, applications, *, p/*, allow";
    let deny = "p, role:b, applications, delete, p/web, deny";
    for csv in [
        format!("{allow}\n{deny}\ng, alice, role:a\ng, alice, role:b"),
        format!("g, alice, role:b\ng, alice, role:a\n{deny}\n{allow}"),
    ] {
        let rights = by_csv(&csv);
        may(&rights, &user("alice"), "applications get p/web");
        may(&rights, &user("alice"), "applications delete p/other");
        may_not(&rights, &user("alice"), "applications delete p/web");
    }
}

#[test]
fn a_deny_of_one_subject_does_not_stop_another_unless_denies_are_strict() {
    let csv = "p, alice, logs, get, p/*, deny\np, role:ops, logs, get, p/*, allow\ng, ops, role:ops";
    let alice = member("alice", &["ops"]);
    may(&by_csv(csv), &alice, "logs get p/web");
    let strict = rights(&[("policy.csv", csv), ("policy.strictDeny", "true")]);
    may_not(&strict, &alice, "logs get p/web");
    may(&strict, &member("bob", &["ops"]), "logs get p/web");
}

#[test]
fn a_deny_of_the_default_role_stops_nothing_unless_denies_are_strict() {
    let csv = "p, role:guest, logs, get, p/*, deny\np, alice, logs, get, p/*, allow";
    let entries = [("policy.csv", csv), ("policy.default", "role:guest")];
    may(&rights(&entries), &user("alice"), "logs get p/web");
    let strict = rights(&[entries[0], entries[1], ("policy.strictDeny", "true")]);
    may_not(&strict, &user("alice"), "logs get p/web");
}

#[test]
fn strict_denies_count_for_groups_without_a_role_too_and_for_the_empty_subject() {
    let csv = "p, role:a, logs, get, *, allow\ng, alice, role:a\np, contractors, logs, get, p/*, deny\np, , logs, get, q/*, deny";
    let alice = member("alice", &["contractors"]);
    may(&by_csv(csv), &alice, "logs get p/web");
    may(&by_csv(csv), &alice, "logs get q/web");
    let strict = rights(&[("policy.csv", csv), ("policy.strictDeny", "true")]);
    may_not(&strict, &alice, "logs get p/web");
    may_not(&strict, &alice, "logs get q/web");
    may(&strict, &alice, "logs get r/web");
}

#[test]
fn the_default_role_is_asked_first_and_is_everybodys() {
    let csv = "p, alice, logs, get, p/*, deny\np, role:guest, logs, get, p/*, allow";
    let rights = rights(&[("policy.csv", csv), ("policy.default", "role:guest")]);
    for caller in [user("alice"), user("bob"), Caller::anonymous(), Caller::project_token("q", "ci")] {
        let decision = decide(&rights, &caller, "logs get p/web");
        assert!(decision.allowed, "{caller:?}");
        let Because::Line { whose, .. } = decision.because else { panic!("no line") };
        assert_eq!(whose, Whose::DefaultRole("role:guest".into()));
    }
}

#[test]
fn groups_count_when_a_line_gives_them_a_role_and_not_by_rights_of_their_own_alone() {
    let rights = by_csv(
        "p, direct, logs, get, p/*, allow\np, both, logs, get, p/*, allow\ng, both, role:nothing\n\
         p, role:a, logs, get, p/*, allow\ng, linked, role:a",
    );
    may_not(&rights, &member("x", &["direct"]), "logs get p/web");
    may(&rights, &member("x", &["both"]), "logs get p/web");
    may(&rights, &member("x", &["direct", "linked"]), "logs get p/web");
    // As a person the same name needs no role.
    may(&rights, &user("direct"), "logs get p/web");
}

#[test]
fn the_person_is_asked_before_the_groups_and_everybody_last() {
    let csv = "p, , logs, get, *, allow\np, role:g, logs, get, *, allow\ng, team, role:g\np, alice, logs, get, *, allow";
    let whose = |caller: &Caller| match decide(&by_csv(csv), caller, "logs get p/web").because {
        Because::Line { whose, .. } => whose,
        other => panic!("{other}"),
    };
    assert_eq!(whose(&member("alice", &["team"])), Whose::Own("alice".into()));
    assert_eq!(whose(&member("bob", &["team"])), Whose::Group("team".into()));
    assert_eq!(whose(&user("bob")), Whose::Everybody);
    assert_eq!(whose(&Caller::anonymous()), Whose::Everybody);
}

#[test]
fn the_anonymous_have_the_default_role_and_what_everybody_has() {
    let csv = "p, , logs, get, p/*, allow\np, role:guest, applications, get, p/*, allow\np, alice, exec, create, *, allow";
    let rights = rights(&[("policy.csv", csv), ("policy.default", "role:guest")]);
    may(&rights, &Caller::anonymous(), "logs get p/web");
    may(&rights, &Caller::anonymous(), "applications get p/web");
    may_not(&rights, &Caller::anonymous(), "exec create p/web");
}

#[test]
fn whoever_is_called_like_a_role_is_not_that_role() {
    let rights = by_csv("p, proj:p:ci, logs, get, *, allow\ng, proj:p:ci, role:readonly");
    for caller in [
        user("role:admin"),
        member("x", &["role:admin"]),
        user("proj:p:ci"),
        member("x", &["proj:p:ci"]),
        Caller::api_key("role:admin"),
    ] {
        may_not(&rights, &caller, "logs get p/web");
        may_not(&rights, &caller, "applications get p/web");
    }
}

#[test]
fn resources_and_actions_are_patterns_too() {
    let rights =
        by_csv("p, a, *, get, *, allow\np, b, app*, \"{get,sync}\", p/*, allow\np, c, logs, g?t, p/*, allow");
    may(&rights, &user("a"), "gpgkeys get k");
    may(&rights, &user("b"), "applicationsets get p/x");
    may(&rights, &user("b"), "applications sync p/x");
    may_not(&rights, &user("b"), "applications delete p/x");
    may_not(&rights, &user("b"), "logs get p/x");
    may(&rights, &user("c"), "logs get p/x");
}

#[test]
fn a_bad_glob_matches_nothing_and_spares_the_rest() {
    let rights = by_csv("p, a, logs, get, [, allow\np, a, logs, get, [, deny\np, a, logs, get, p/*, allow");
    may(&rights, &user("a"), "logs get p/web");
    may_not(&rights, &user("a"), "logs get [");
}

#[test]
fn a_bad_glob_is_refused_where_denies_are_strict() {
    let entries = [("policy.csv", "p, a, logs, get, [, deny"), ("policy.strictDeny", "true")];
    let error = crate::load(&entries).expect_err("a deny that cannot match").to_string();
    assert!(error.contains("line 1 of policy.csv") && error.contains("policy.strictDeny"), "{error}");
}

#[test]
fn expressions_match_anywhere_and_the_built_in_policy_stays_as_it_is() {
    let csv = "p, a, ^logs$, get, ^p/.*-prod$, allow\np, b, applications, .*, .*, allow";
    let rights = rights(&[("policy.csv", csv), ("policy.matchMode", "regex")]);
    may(&rights, &user("a"), "logs get p/web-prod");
    may_not(&rights, &user("a"), "logs get p/web-prod-2");
    // `applications` is found in `applicationsets`.
    may(&rights, &user("b"), "applicationsets delete q/x");
    may(&rights, &user("admin"), "applications sync p/web");
    may_not(&rights, &user("b"), "logs get p/web");
}

#[test]
fn whoever_is_judged_by_an_expression_that_cannot_be_read_is_refused_and_others_are_not() {
    let csv = "p, a, logs, get, .*, allow\np, a, logs, get, (, allow\np, role:b, logs, get, .*, allow\ng, team, role:b";
    let rights = rights(&[("policy.csv", csv), ("policy.matchMode", "regex")]);
    may_not(&rights, &user("a"), "logs get p/web");
    may(&rights, &member("a", &["team"]), "logs get p/web");
    let because = decide(&rights, &user("a"), "logs get p/web").because;
    assert!(matches!(because, Because::Unreadable { .. }), "{because}");
    // The line is not about that.
    assert!(matches!(decide(&rights, &user("a"), "exec create p/web").because, Because::Nothing));
}

#[test]
fn another_effect_than_allow_or_deny_does_nothing() {
    let rights =
        by_csv("p, a, logs, get, *, maybe\np, a, logs, get, p/*, allow\np, a, logs, get, q/*, Allow");
    may(&rights, &user("a"), "logs get p/web");
    may_not(&rights, &user("a"), "logs get q/web");
}

#[test]
fn the_right_over_an_application_covers_its_resources_only_where_that_is_inherited() {
    let rights =
        by_csv("p, a, applications, update, p/*, allow\np, a, applications, delete/*/Pod/*, p/*, allow");
    let alice = user("a");
    let update = request("applications update/apps/Deployment/ns/web p/x");
    let delete = request("applications delete//Pod/ns/x p/x");
    let other = request("applications delete/apps/Deployment/ns/web p/x");
    let mut review = rights.review(&alice);
    assert!(!review.decide(&update).allowed);
    assert!(review.decide_inherited(&update).allowed);
    assert!(review.decide(&delete).allowed && review.decide_inherited(&delete).allowed);
    assert!(!review.decide_inherited(&other).allowed);
    // A set has no resources.
    assert!(!review.decide_inherited(&request("applicationsets update/a/B/c/d p/x")).allowed);
}

#[test]
fn a_review_says_what_single_decisions_say_in_any_order() {
    let csv =
        "p, alice, applications, get, p/*, allow\np, alice, logs, get, q/*, allow\ng, team, role:readonly";
    let rights = crate::with_project(
        by_csv(csv),
        "p",
        &[("r", &["p, proj:p:r, applications, sync, p/*, allow"], &["team"])],
    );
    let token = Caller::project_token("p", "r");
    for caller in [member("alice", &["team"]), user("alice"), token, Caller::anonymous()] {
        let mut review = rights.review(&caller);
        for round in 0..3 {
            for text in [
                "applications get p/a",
                "applications get q/a",
                "logs get q/a",
                "applications sync p/a",
                "applications sync q/a",
                "accounts get x",
                "projects get p",
                "projects get unknown",
                "applications get x/a",
            ] {
                let expected = decide(&rights, &caller, text).allowed;
                assert_eq!(review.decide(&request(text)).allowed, expected, "{text} in round {round}");
            }
        }
    }
}
