//! Baton's rights, and who approves deletions.

use baton_rbac::{Action, Because, Caller, Object, Request, Resource, Rights, SetVerb, TokenApproval};

use crate::{by_csv, decide, may, may_not, project, rights, user};

const APPROVE: &str = "applications action/apps/Deployment/approve-deletion pay/web";
const APPROVE_APPLICATION: &str = "applications action/argoproj.io/Application/approve-deletion pay/web";
const APPROVE_SET: &str = "applicationsets action/argoproj.io/ApplicationSet/approve-deletion pay/set";

/// Everybody may approve everything, in a project whose tokens may or may not.
fn generous(token_approval: TokenApproval) -> Rights {
    let mut rights = rights(&[
        (
            "policy.csv",
            "p, role:all, *, *, *, allow\ng, bot, role:all\ng, alice, role:all\ng, proj:pay:ci, role:all",
        ),
        ("policy.default", "role:all"),
    ]);
    rights.set_project(&project("pay", &[("ci", &[], &[])]), token_approval).expect("valid roles");
    rights
}

#[test]
fn tokens_of_programs_do_not_approve_deletions_whatever_a_line_says() {
    let rights = generous(TokenApproval::Refused);
    for caller in [Caller::api_key("bot"), Caller::project_token("pay", "ci")] {
        for text in
            [APPROVE, APPROVE_APPLICATION, APPROVE_SET, "applications action//Pod/approve-deletion unknown/x"]
        {
            let decision = decide(&rights, &caller, text);
            assert!(
                !decision.allowed && matches!(decision.because, Because::TokenApproves),
                "{text}: {decision}"
            );
        }
        may(&rights, &caller, "applications action/apps/Deployment/restart pay/web");
        may(&rights, &caller, "applicationsets action/argoproj.io/ApplicationSet/pause pay/set");
    }
}

#[test]
fn tokens_approve_where_the_project_lets_them_and_only_there() {
    let rights = generous(TokenApproval::Allowed);
    for caller in [Caller::api_key("bot"), Caller::project_token("pay", "ci")] {
        for text in [APPROVE, APPROVE_APPLICATION, APPROVE_SET] {
            may(&rights, &caller, text);
        }
        may_not(&rights, &caller, "applications action//Pod/approve-deletion other/web");
    }
}

#[test]
fn a_project_that_changes_its_mind_is_heard() {
    let mut rights = generous(TokenApproval::Allowed);
    may(&rights, &Caller::api_key("bot"), APPROVE);
    rights.set_project(&project("pay", &[("ci", &[], &[])]), TokenApproval::Refused).expect("valid roles");
    may_not(&rights, &Caller::api_key("bot"), APPROVE);
}

#[test]
fn people_approve_where_a_line_lets_them() {
    let rights = by_csv(
        "p, role:release, applications, action/*/*/approve-deletion, pay/*, allow\n\
         p, role:dev, applications, action//Namespace/approve-deletion, */*, deny\n\
         g, alice, role:release\ng, bob, role:release\ng, bob, role:dev",
    );
    for name in ["alice", "bob"] {
        may(&rights, &user(name), APPROVE);
        may(&rights, &user(name), APPROVE_APPLICATION);
        may_not(&rights, &user(name), "applications action/apps/Deployment/approve-deletion other/web");
        may_not(&rights, &user(name), "applications action/apps/Deployment/restart pay/web");
        may_not(&rights, &user(name), APPROVE_SET);
    }
    may(&rights, &user("alice"), "applications action//Namespace/approve-deletion pay/web");
    may_not(&rights, &user("bob"), "applications action//Namespace/approve-deletion pay/web");
}

#[test]
fn to_update_is_not_to_approve() {
    let rights =
        by_csv("p, alice, applications, update, *, allow\np, alice, applicationsets, update, *, allow");
    may_not(&rights, &user("alice"), APPROVE);
    may_not(&rights, &user("alice"), APPROVE_SET);
}

#[test]
fn every_verb_on_a_set_is_a_right_of_its_own() {
    for granted in SetVerb::ALL {
        let action = Action::on_set(granted);
        let rights = by_csv(&format!("p, alice, applicationsets, {action}, pay/*, allow"));
        for asked in SetVerb::ALL {
            let object = Object::in_project("pay", "", "set", "argocd").expect("parts");
            let request = Request::new(Resource::ApplicationSets, Action::on_set(asked), object);
            assert_eq!(rights.decide(&user("alice"), &request).allowed, asked == granted, "{request}");
            assert!(rights.decide(&user("admin"), &request).allowed, "{request}");
        }
    }
}

#[test]
fn can_i_takes_actions_of_resources_too() {
    let rights = by_csv("p, alice, applications, action/*/*/approve-deletion, pay/*, allow");
    let can = |resource: &str, action: &str, object: &str| {
        rights.can_i(&user("alice"), resource, action, object, "argocd").map(|decision| decision.allowed)
    };
    assert_eq!(can("applications", "action/apps/Deployment/approve-deletion", "pay/web"), Ok(true));
    assert_eq!(can("applications", "action/apps/Deployment/approve-deletion", "pay/argocd/web"), Ok(true));
    assert_eq!(can("applications", "action/apps/Deployment/approve-deletion", "other/web"), Ok(false));
    assert_eq!(can("applications", "sync", "pay/web"), Ok(false));
    assert!(can("apps", "sync", "pay/web").is_err());
    assert!(can("applications", "approve", "pay/web").is_err());
}
