//! What people are told.

use baton_rbac::{Caller, DENIED, TokenApproval, denial};

use crate::{decide, member, project, request, rights, user};

#[test]
fn decisions_name_the_line_or_say_why_there_is_none() {
    let csv = "p, role:dev, applications, *, pay/*, allow\ng, devs, role:dev\np, alice, applications, delete, pay/core, deny\n\
               p, alice, applications, *, pay/core, allow\np, , logs, get, open/*, allow";
    let mut rights = rights(&[("policy.csv", csv), ("policy.default", "role:readonly")]);
    let ci: crate::Role<'_> = ("ci", &["p, proj:pay:ci, applications, sync, pay/*, allow"], &["ops"]);
    rights.set_project(&project("pay", &[ci]), TokenApproval::Refused).expect("valid roles");
    rights
        .set_project(&project("broken", &[("r", &["p, oops"], &[])]), TokenApproval::Refused)
        .expect_err("two fields");
    let token = Caller::project_token("pay", "ci");
    let table = [
        (user("alice"), "applications get pay/web"),
        (user("admin"), "applications sync pay/web"),
        (member("bob", &["devs"]), "applications sync pay/web"),
        (user("alice"), "applications delete pay/core"),
        (member("carol", &["ops"]), "applications sync pay/web"),
        (member("carol", &["ops"]), "applications delete pay/web"),
        (token.clone(), "projects get pay"),
        (token.clone(), "applications sync other/web"),
        (token, "applications action//Pod/approve-deletion pay/web"),
        (member("carol", &["ops"]), "applications sync broken/web"),
        (Caller::anonymous(), "exec create pay/web"),
    ];
    let told: Vec<String> = table
        .iter()
        .map(|(caller, text)| format!("{} {text}\n  {}", caller.id(), decide(&rights, caller, text)))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn an_expression_that_cannot_be_read_is_named() {
    let rights = rights(&[("policy.csv", "p, a, logs, get, *, allow"), ("policy.matchMode", "regex")]);
    insta::assert_snapshot!(decide(&rights, &user("a"), "logs get p/web"));
}

#[test]
fn a_denial_has_the_words_of_argo_cd() {
    let request = request("applications sync pay/web");
    let issued = "2024-05-01T10:20:30.5Z".parse().expect("a time");
    assert_eq!(
        denial(&user("alice").with_issued_at(issued), &request),
        "permission denied: applications, sync, pay/web, sub: alice, iat: 2024-05-01T10:20:30Z"
    );
    assert_eq!(
        denial(&user("alice"), &request),
        "permission denied: applications, sync, pay/web, sub: alice"
    );
    assert_eq!(denial(&Caller::anonymous(), &request), "permission denied: applications, sync, pay/web");
    assert_eq!(DENIED, "permission denied");
}

#[test]
fn errors_of_loading_say_where_and_what_to_do() {
    let error = |entries: &[(&str, &str)]| crate::load(entries).expect_err("refused").to_string();
    let told = [
        error(&[("policy.csv", "\np, a, b")]),
        error(&[("policy.x.csv", "g, a b, \"c")]),
        error(&[("policy.csv", &format!("user, {}", "é".repeat(300)))]),
        error(&[("scopes", "groups")]),
        error(&[("policy.strictDeny", "on")]),
    ];
    insta::assert_snapshot!(told.join("\n"));
}
