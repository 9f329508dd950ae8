//! Roles of projects.

use std::sync::Arc;

use baton_rbac::{Because, Caller, LoadError, Origin, Policy, Rights, TokenApproval, validate_roles};

use crate::{Role, by_csv, decide, may, may_not, member, project, rights, user, with_project};

const CI: Role<'static> = (
    "ci",
    &[
        "p, proj:pay:ci, applications, sync, pay/*, allow",
        "p, proj:pay:ci, applications, sync, pay/core, deny",
    ],
    &["pay-devs", "\"cn=a, ou=b\""],
);

#[test]
fn a_role_holds_for_its_groups_in_its_project() {
    let rights = with_project(by_csv(""), "pay", &[CI]);
    for group in ["pay-devs", "cn=a, ou=b"] {
        let dev = member("x", &[group]);
        may(&rights, &dev, "applications sync pay/web");
        may_not(&rights, &dev, "applications sync pay/core");
        may_not(&rights, &dev, "applications sync other/web");
        may_not(&rights, &dev, "applications delete pay/web");
    }
    may_not(&rights, &member("x", &["others"]), "applications sync pay/web");
    // Whoever is called like the group holds the role as well.
    may(&rights, &user("pay-devs"), "applications sync pay/web");
}

#[test]
fn whoever_has_a_role_may_see_the_project_and_no_other() {
    let rights = with_project(with_project(by_csv(""), "pay", &[CI]), "other", &[]);
    for caller in [member("x", &["pay-devs"]), Caller::project_token("pay", "ci")] {
        may(&rights, &caller, "projects get pay");
        may_not(&rights, &caller, "projects update pay");
        may_not(&rights, &caller, "projects get other");
        may_not(&rights, &caller, "projects get unknown");
    }
}

#[test]
fn a_token_of_a_project_is_checked_against_its_own_project_only() {
    let csv = "p, proj:pay:ci, logs, get, *, allow\np, proj:pay:ci, accounts, get, *, allow";
    let rights = with_project(with_project(by_csv(csv), "pay", &[CI]), "other", &[]);
    let token = Caller::project_token("pay", "ci");
    may(&rights, &token, "applications sync pay/web");
    may(&rights, &token, "logs get pay/web");
    for text in ["logs get other/web", "logs get unknown/web"] {
        may_not(&rights, &token, text);
        assert!(matches!(decide(&rights, &token, text).because, Because::ForeignToken { .. }));
    }
    // What is in no project, the policy of the installation decides.
    may(&rights, &token, "accounts get x");
    may_not(&rights, &Caller::project_token("pay", "unknown"), "applications sync pay/web");
}

#[test]
fn a_role_does_nothing_outside_its_project_whatever_its_text_says() {
    let wild: Role<'_> = (
        "r",
        &[
            "p, proj:a:r, *, *, *, allow",
            "p, alice, *, *, *, allow",
            "g, bob, role:admin",
            "p, , *, *, *, allow",
        ],
        &["team"],
    );
    let rights = with_project(with_project(by_csv(""), "a", &[wild]), "b", &[]);
    for caller in [
        member("x", &["team"]),
        user("alice"),
        user("bob"),
        Caller::project_token("a", "r"),
        Caller::anonymous(),
    ] {
        for text in [
            "applications get b/x",
            "projects get b",
            "projects create c",
            "clusters get https://x",
            "accounts get admin",
            "certificates get c",
            "write-repositories get a/x",
        ] {
            may_not(&rights, &caller, text);
        }
    }
    may(&rights, &member("x", &["team"]), "applications delete a/x");
    // The empty subject is asked without the project.
    may_not(&rights, &user("somebody"), "applications get a/x");
}

#[test]
fn roles_of_the_policy_and_of_projects_lead_into_each_other() {
    let csv = "g, alice, pay-devs\ng, proj:pay:ci, role:logs\np, role:logs, logs, get, */*, allow";
    let rights = with_project(by_csv(csv), "pay", &[CI]);
    may(&rights, &user("alice"), "applications sync pay/web");
    may(&rights, &user("alice"), "logs get pay/web");
    may_not(&rights, &user("alice"), "logs get other/web");
    may(&rights, &member("x", &["pay-devs"]), "logs get pay/web");
}

#[test]
fn a_deny_of_the_policy_outweighs_what_a_project_allows() {
    let csv = "p, proj:pay:ci, applications, *, pay/web, deny";
    let rights = with_project(by_csv(csv), "pay", &[CI]);
    may_not(&rights, &member("x", &["pay-devs"]), "applications sync pay/web");
    may(&rights, &member("x", &["pay-devs"]), "applications sync pay/api");
}

#[test]
fn the_default_role_is_given_roles_by_projects_too() {
    let mut rights =
        rights(&[("policy.default", "role:guest"), ("policy.csv", "p, role:guest, logs, get, none, allow")]);
    rights
        .set_project(
            &project("open", &[("r", &["p, proj:open:r, logs, get, open/*, allow"], &["role:guest"])]),
            TokenApproval::Refused,
        )
        .expect("valid roles");
    may(&rights, &user("anybody"), "logs get open/web");
    may_not(&rights, &user("anybody"), "logs get other/web");
    // Argo CD asks for the anonymous without the project.
    may_not(&rights, &Caller::anonymous(), "logs get open/web");
}

#[test]
fn roles_that_cannot_be_read_leave_the_policy_alone_and_say_so() {
    let mut rights = by_csv("p, alice, applications, get, pay/*, allow");
    let broken = project("pay", &[CI, ("other", &["p, proj:pay:other, applications, sync, pay/*"], &[])]);
    let error = rights.set_project(&broken, TokenApproval::Refused).expect_err("five fields");
    let LoadError::Line { origin, .. } = &*error else { panic!("{error}") };
    let field = "spec.roles[1].policies[0]".to_owned();
    assert_eq!(origin, &Origin::Project { project: "pay".into(), field });
    may(&rights, &user("alice"), "applications get pay/web");
    let decision = decide(&rights, &member("x", &["pay-devs"]), "applications sync pay/web");
    assert!(!decision.allowed && matches!(decision.because, Because::ProjectUnread { .. }), "{decision}");
}

#[test]
fn a_group_cannot_smuggle_in_a_line() {
    for group in ["x, role:admin\ng, alice", "a\"b", "a, role:admin"] {
        let mut rights = by_csv("");
        let sly = project("pay", &[("ci", &[], &[group])]);
        rights.set_project(&sly, TokenApproval::Refused).expect_err(group);
        may_not(&rights, &user("alice"), "applications get pay/web");
    }
}

#[test]
fn projects_come_and_go_and_follow_the_policys_mode() {
    let mut rights = with_project(by_csv(""), "pay", &[CI]);
    let dev = member("x", &["pay-devs"]);
    may(&rights, &dev, "applications sync pay/web");
    let expressions = crate::data(&[("policy.matchMode", "regex")]);
    rights.set_policy(Policy::load(&expressions).expect("a policy"));
    // `pay/*` is now any number of slashes after `pay`.
    may(&rights, &dev, "applications sync pay/web");
    may_not(&rights, &dev, "applications sync pay/core");
    let before = rights.clone();
    rights.remove_project("pay");
    may_not(&rights, &dev, "applications sync pay/web");
    may(&before, &dev, "applications sync pay/web");
    rights
        .set_project(&project("pay", &[("ci", &[], &["pay-devs"])]), TokenApproval::Refused)
        .expect("valid");
    may_not(&rights, &dev, "applications sync pay/web");
}

#[test]
fn roles_are_compiled_once_per_text() {
    let mut rights = with_project(by_csv(""), "pay", &[CI]);
    let dev = member("x", &["pay-devs"]);
    let line = |rights: &Rights| match decide(rights, &dev, "applications sync pay/web").because {
        Because::Line { line, .. } => line,
        other => panic!("{other}"),
    };
    let first = line(&rights);
    let mut again = project("pay", &[CI]);
    again.spec.description = "another version of the same roles".to_owned();
    rights.set_project(&again, TokenApproval::Refused).expect("valid");
    assert!(Arc::ptr_eq(&first, &line(&rights)));
    rights.set_project(&project("pay", &[CI, ("more", &[], &[])]), TokenApproval::Refused).expect("valid");
    assert!(!Arc::ptr_eq(&first, &line(&rights)));
}

#[test]
fn sound_roles_have_no_findings() {
    let roles: &[Role<'_>] = &[
        CI,
        (
            "a-b_c9",
            &[
                "p, proj:pay:a-b_c9, applications, *, pay/*, allow",
                "p, proj:pay:a-b_c9, applications, action/*/*/approve-deletion, pay/*, allow",
                "p, proj:pay:a-b_c9, applications, update/*, pay/ns/*, allow",
                "p, proj:pay:a-b_c9, applications, delete/*/Pod/*, pay/web-*.x, deny",
                "p, proj:pay:a-b_c9, applicationsets, action/argoproj.io/ApplicationSet/pause, pay/*, allow",
                "p, proj:pay:a-b_c9, repositories, create, pay/*, allow",
                "p, proj:pay:a-b_c9, clusters, get, pay/*, allow",
                "p, proj:pay:a-b_c9, logs, get, pay/*, allow",
                "p, proj:pay:a-b_c9, exec, create, pay/*, allow",
                "p, proj:pay:a-b_c9, applications, rollback, pay/*, allow",
                "p, proj:pay:a-b_c9, applications, override, pay/*, allow",
            ],
            &["g", "\"a, b\""],
        ),
    ];
    assert_eq!(validate_roles(&project("pay", roles)), []);
}

#[test]
fn every_fault_of_a_role_has_a_field_and_a_remedy() {
    let roles: &[Role<'_>] = &[
        (
            "ci",
            &[
                "p, proj:pay:other, applications, sync, pay/*, allow",
                "p, proj:pay:ci, accounts, get, pay/*, allow",
                "p, proj:pay:ci, applications, invoke, pay/*, allow",
                "p, proj:pay:ci, applications, xaction/a, pay/*, allow",
                "p, proj:pay:ci, applications, sync, other/*, allow",
                "p, proj:pay:ci, applications, sync, pay/a/b/c, allow",
                "p, proj:pay:ci, applications, sync, *, allow",
                "p, proj:pay:ci, applications, sync, payments/*, allow",
                "p, proj:pay:ci, applications, sync, pay/, allow",
                "p, proj:pay:ci, applications, sync, pay/*, Allow",
                "p, proj:pay:ci, applications, sync, pay/*",
                "g, alice, proj:pay:ci",
                "",
                "p, proj:pay:ci, logs, get, pay/*, allow",
                "p, proj:pay:ci, logs, get, pay/*, allow",
                "p, proj:pay:ci, logs, get, pay/a, allow\ng, alice, role:admin",
            ],
            &["", "a,b", " x", "x ", "a\tb", "say \"x\"", "twice", "twice", "\"\""],
        ),
        ("ci", &[], &[]),
        ("-x", &[], &[]),
        ("", &[], &[]),
        ("a:b", &[], &[]),
    ];
    let findings = validate_roles(&project("pay", roles));
    let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn roles_beyond_the_bounds_are_refused() {
    let many: Vec<String> = (0..600).map(|at| format!("r{at}")).collect();
    let roles: Vec<Role<'_>> = many.iter().map(|name| (name.as_str(), &[][..], &[][..])).collect();
    assert_eq!(validate_roles(&project("pay", &roles)).len(), 1);
    let long = "x".repeat(600 << 10);
    let mut rights = by_csv("");
    let large = project("pay", &[("ci", &[], &[&long])]);
    let error = rights.set_project(&large, TokenApproval::Refused).expect_err("too large");
    assert!(matches!(*error, LoadError::Size { .. }));
}
